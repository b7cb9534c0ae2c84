// SPDX-License-Identifier: Apache-2.0
package tare.log;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Array;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;

/**
 * Calls a function of the library that comes back at once as {@link Critical} does, in Java 17:
 * its compiler can, for the java.lang.foreign that it only incubates. What that is built on is in
 * java.base.
 */
final class Trivial {
    static final boolean IS_THERE =
            Runtime.version().feature() == 17
                    && System.getProperty("os.arch").equals("amd64")
                    && isHotSpot()
                    && Native.IS_THERE;

    private static final String INVOKE = "jdk.internal.invoke";
    private static final String ACCESS = "jdk.internal.access";

    private Trivial() {}

    /** Another compiler, such as Graal's, knows nothing of these calls. */
    private static boolean isHotSpot() {
        return System.getProperty("java.vm.name").endsWith("64-Bit Server VM")
                && !System.getProperty("java.vm.version").contains("jvmci");
    }

    /**
     * The function without arguments that {@link Native#address} calls {@code what}; code that is
     * not compiled calls {@code slow}, which does the same.
     */
    static MethodHandle call(int what, MethodHandle slow) throws Throwable {
        open(INVOKE);
        open(ACCESS);
        Class<?> register = Class.forName(INVOKE + ".VMStorageProxy");
        Class<?> convention = Class.forName(INVOKE + ".ABIDescriptorProxy");
        Class<?> entry = Class.forName(INVOKE + ".NativeEntryPoint");
        Class<?> registers = register.arrayType();
        Object arguments = Array.newInstance(register, 0);
        Object results = Array.newInstance(register, 1);
        Array.set(results, 0, ofZeros(register)); // the first integer register, rax
        String name = "tare.log"; // the compiler fails on an empty one
        MethodType type = MethodType.methodType(long.class, long.class);
        Object point =
                entry.getMethod(
                                "make",
                                String.class,
                                convention,
                                registers,
                                registers,
                                boolean.class,
                                MethodType.class)
                        .invoke(null, name, ofZeros(convention), arguments, results, false, type);
        Object access =
                Class.forName(ACCESS + ".SharedSecrets")
                        .getMethod("getJavaLangInvokeAccess")
                        .invoke(null);
        MethodHandle uncompiled = MethodHandles.dropArguments(slow, 0, long.class);
        MethodHandle anywhere =
                (MethodHandle)
                        Class.forName(ACCESS + ".JavaLangInvokeAccess")
                                .getMethod("nativeMethodHandle", entry, MethodHandle.class)
                                .invoke(access, point, uncompiled);
        return MethodHandles.insertArguments(anywhere, 0, Native.address(what));
    }

    private static void open(String of) {
        Module base = Object.class.getModule();
        Module here = Trivial.class.getModule();
        if (!base.isExported(of, here) && !Native.export(base, of, here)) {
            throw new IllegalStateException(of + " is closed");
        }
    }

    /** All of whose methods return 0. */
    private static Object ofZeros(Class<?> type) {
        InvocationHandler zero = (self, method, arguments) -> 0;
        return Proxy.newProxyInstance(Trivial.class.getClassLoader(), new Class<?>[] {type}, zero);
    }
}
