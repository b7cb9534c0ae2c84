// SPDX-License-Identifier: Apache-2.0
package tare.log;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.invoke.VarHandle;
import java.lang.reflect.Field;

/**
 * Reads and writes memory by its address: a MemorySegment over all of it from Java 22 on, Unsafe
 * before. Both are reached by handles, so that one class file serves every Java; the compiler
 * makes plain loads and stores of them.
 */
final class Memory {
    /** What was chosen. */
    static final String FOUND;

    static final boolean IS_THERE;
    private static final MethodHandle GET_BYTE;
    private static final MethodHandle GET_LONG;
    private static final MethodHandle PUT_LONG;
    private static final MethodHandle PUT_LONG_RELEASE;

    static {
        String found;
        MethodHandle[] handles = null;
        try {
            boolean hasSegments = Runtime.version().feature() >= 22;
            handles = hasSegments ? segment() : unsafe();
            found = hasSegments ? "MemorySegment" : "Unsafe";
        } catch (Throwable e) {
            found = "none: " + e;
        }
        FOUND = found;
        IS_THERE = handles != null;
        GET_BYTE = IS_THERE ? handles[0] : null;
        GET_LONG = IS_THERE ? handles[1] : null;
        PUT_LONG = IS_THERE ? handles[2] : null;
        PUT_LONG_RELEASE = IS_THERE ? handles[3] : null;
    }

    private Memory() {}

    /**
     * The same address, of which the compiler now knows that nothing near it is outside of a
     * MemorySegment.
     */
    static long positive(long address) {
        return address & Long.MAX_VALUE >>> 1;
    }

    /** What another process may have just changed: not what an earlier reading of it was. */
    static byte getByte(long address) throws Throwable {
        return (byte) GET_BYTE.invokeExact(address);
    }

    static long getLong(long address) throws Throwable {
        return (long) GET_LONG.invokeExact(address);
    }

    static void putLong(long address, long value) throws Throwable {
        PUT_LONG.invokeExact(address, value);
    }

    static void putLongRelease(long address, long value) throws Throwable {
        PUT_LONG_RELEASE.invokeExact(address, value);
    }

    private static MethodHandle[] unsafe() throws ReflectiveOperationException {
        MethodHandles.Lookup lookup = MethodHandles.lookup();
        Class<?> type = Class.forName("sun.misc.Unsafe");
        Field field = type.getDeclaredField("theUnsafe");
        field.setAccessible(true);
        Object unsafe = field.get(null);
        MethodHandle ordered =
                lookup.findVirtual(
                        type,
                        "putOrderedLong",
                        MethodType.methodType(void.class, Object.class, long.class, long.class));
        MethodHandle current =
                lookup.findVirtual(
                        type,
                        "getByteVolatile",
                        MethodType.methodType(byte.class, Object.class, long.class));
        return new MethodHandle[] {
            MethodHandles.insertArguments(current.bindTo(unsafe), 0, (Object) null),
            lookup.findVirtual(type, "getLong", MethodType.methodType(long.class, long.class))
                    .bindTo(unsafe),
            lookup.findVirtual(
                            type,
                            "putLong",
                            MethodType.methodType(void.class, long.class, long.class))
                    .bindTo(unsafe),
            MethodHandles.insertArguments(ordered.bindTo(unsafe), 0, (Object) null),
        };
    }

    /** MemorySegment.NULL.reinterpret(Long.MAX_VALUE), in which an offset is an address. */
    private static MethodHandle[] segment() throws Throwable {
        MethodHandles.Lookup lookup = MethodHandles.lookup();
        Class<?> type = Class.forName("java.lang.foreign.MemorySegment");
        Object none = type.getField("NULL").get(null);
        Object all =
                lookup.findVirtual(type, "reinterpret", MethodType.methodType(type, long.class))
                        .invoke(none, Long.MAX_VALUE);
        VarHandle bytes = layout("JAVA_BYTE");
        VarHandle longs = layout("JAVA_LONG");
        // Every address is a multiple of eight, and this does not look.
        VarHandle plain = layout("JAVA_LONG_UNALIGNED");
        return new MethodHandle[] {
            access(bytes, VarHandle.AccessMode.GET_OPAQUE, all),
            access(plain, VarHandle.AccessMode.GET, all),
            access(plain, VarHandle.AccessMode.SET, all),
            access(longs, VarHandle.AccessMode.SET_RELEASE, all),
        };
    }

    private static VarHandle layout(String name) throws ReflectiveOperationException {
        Object layout = Class.forName("java.lang.foreign.ValueLayout").getField(name).get(null);
        Class<?> type = Class.forName("java.lang.foreign.ValueLayout");
        return (VarHandle) type.getMethod("varHandle").invoke(layout);
    }

    private static MethodHandle access(VarHandle handle, VarHandle.AccessMode mode, Object all) {
        return MethodHandles.insertArguments(handle.toMethodHandle(mode), 0, all);
    }
}
