// SPDX-License-Identifier: Apache-2.0
package tare.log;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.charset.StandardCharsets;

/**
 * Events of virtual threads. One may be on another thread of the kernel after any instruction,
 * so Java never writes to a ring for it: the library does, in one call, during which it stays.
 */
final class VirtualThreads {
    /** How the library is called. */
    static final String FOUND;

    private static final boolean ARE_THERE = Runtime.version().feature() >= 21;
    private static final MethodHandle IS_VIRTUAL;

    /** Takes channel, payload and number of the thread; null where it is a native method. */
    private static final MethodHandle TRY;

    static {
        MethodHandle isVirtual = null;
        MethodHandle direct = null;
        String found = "none in this Java";
        if (ARE_THERE) {
            try {
                MethodType type = MethodType.methodType(boolean.class);
                isVirtual = MethodHandles.lookup().findVirtual(Thread.class, "isVirtual", type);
                found = "by native methods";
                if (Critical.IS_THERE) {
                    direct = Critical.call(0, int.class, int.class, long.class, int.class);
                    found = "by critical calls";
                }
            } catch (Throwable e) {
                found += ": " + e;
            }
        }
        IS_VIRTUAL = isVirtual;
        TRY = direct;
        FOUND = found;
    }

    private VirtualThreads() {}

    static boolean is(Thread thread) throws Throwable {
        return ARE_THERE && (boolean) IS_VIRTUAL.invokeExact(thread);
    }

    static void log(Thread thread, int channel, long payload) throws Throwable {
        int number = number(thread);
        int done =
                TRY == null
                        ? Native.tryVirtual(channel, payload, number)
                        : (int) TRY.invokeExact(channel, payload, number);
        if (done == 0) {
            Native.logVirtual(channel, payload, number, name(thread));
        }
    }

    static void log(Thread thread, int channel, byte[] bytes, int from, int length) {
        Native.logVirtualBytes(channel, bytes, from, length, number(thread), name(thread));
    }

    /** Java's, with bit 31 set, which no number of the kernel has. */
    @SuppressWarnings("deprecation") // threadId() is not there in Java 17
    private static int number(Thread thread) {
        return (int) thread.getId() | Integer.MIN_VALUE;
    }

    private static byte[] name(Thread thread) {
        return thread.getName().getBytes(StandardCharsets.UTF_8);
    }
}
