// SPDX-License-Identifier: Apache-2.0
package tare.log;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Array;

/**
 * Calls functions of the library that come back at once without leaving the state in which Java
 * code runs: java.lang.foreign, from Java 22 on.
 */
final class Critical {
    static final boolean IS_THERE = Runtime.version().feature() >= 22 && Native.IS_THERE;

    private Critical() {}

    /** The function that {@link Native#address} calls {@code what}. */
    static MethodHandle call(int what, Class<?> result, Class<?>... arguments) throws Throwable {
        Class<?> linker = type("Linker");
        Class<?> option = type("Linker$Option");
        Class<?> segment = type("MemorySegment");
        Class<?> layout = type("MemoryLayout");
        Class<?> descriptor = type("FunctionDescriptor");
        Object layouts = Array.newInstance(layout, arguments.length);
        for (int place = 0; place < arguments.length; place++) {
            Array.set(layouts, place, layout(arguments[place]));
        }
        Object function =
                descriptor
                        .getMethod("of", layout, layouts.getClass())
                        .invoke(null, layout(result), layouts);
        Object options = Array.newInstance(option, 1);
        Array.set(options, 0, option.getMethod("critical", boolean.class).invoke(null, false));
        Object here = segment.getMethod("ofAddress", long.class).invoke(null, Native.address(what));
        MethodType type =
                MethodType.methodType(MethodHandle.class, segment, descriptor, options.getClass());
        Object nativeLinker = linker.getMethod("nativeLinker").invoke(null);
        return (MethodHandle)
                MethodHandles.lookup()
                        .findVirtual(linker, "downcallHandle", type)
                        .asFixedArity()
                        .invoke(nativeLinker, here, function, options);
    }

    private static Object layout(Class<?> type) throws ReflectiveOperationException {
        String name = type == int.class ? "JAVA_INT" : "JAVA_LONG";
        return type("ValueLayout").getField(name).get(null);
    }

    private static Class<?> type(String name) throws ClassNotFoundException {
        return Class.forName("java.lang.foreign." + name);
    }
}
