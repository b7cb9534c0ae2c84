// SPDX-License-Identifier: Apache-2.0
package tare.log;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.Optional;

/**
 * Reads the tick counter: by the JVM's own intrinsic, that of its flight recorder, which is the
 * same counter less what it had when the JVM started; or, where this JVM counts something else
 * there, by the shortest call of the library that it has. Either is faster than nanoTime.
 */
final class Clock {
    /** What was chosen. */
    static final String FOUND;

    private static final MethodHandle COUNTER;
    private static final long OFFSET;

    /** What the offset may be unknown by, in ticks. */
    private static final long WIDEST = 10_000;

    private static final long LEAST_NANOS = 2_000_000;
    private static final long MOST_NANOS = 50_000_000;

    static {
        String found;
        MethodHandle counter = null;
        long offset = 0;
        boolean isChosen = System.getProperty("tare.log.clock", "").equals("native");
        try {
            if (isChosen) {
                throw new IllegalStateException("-Dtare.log.clock=native");
            }
            MethodHandle intrinsic = intrinsic();
            long[] bounds = bounds(intrinsic);
            offset = bounds[0] + (bounds[1] - bounds[0]) / 2;
            long error = (bounds[1] - bounds[0] + 1) / 2;
            counter = intrinsic;
            found = "ticks, read by the flight recorder's intrinsic, to within " + error;
        } catch (Throwable e) {
            found = e.getMessage();
        }
        if (counter == null && !isChosen && (Critical.IS_THERE || Trivial.IS_THERE)) {
            try {
                counter =
                        Critical.IS_THERE
                                ? Critical.call(1, long.class)
                                : Trivial.call(1, nativeMethod());
                found = "ticks, read by a critical call: " + found;
            } catch (Throwable e) {
                found += "; " + e;
            }
        }
        if (counter == null) {
            counter = nativeMethod();
            found = "ticks, read by a native method: " + found;
        }
        FOUND = found;
        COUNTER = counter;
        OFFSET = offset;
    }

    private Clock() {}

    static long ticks() throws Throwable {
        return (long) COUNTER.invokeExact() + OFFSET;
    }

    private static MethodHandle nativeMethod() {
        try {
            MethodType type = MethodType.methodType(long.class);
            return MethodHandles.lookup().findStatic(Native.class, "ticks", type);
        } catch (ReflectiveOperationException e) {
            throw new AssertionError(e); // it stands there
        }
    }

    private static MethodHandle intrinsic() throws ReflectiveOperationException {
        Optional<Module> recorder = ModuleLayer.boot().findModule("jdk.jfr");
        String of = "jdk.jfr.internal";
        Module here = Clock.class.getModule();
        if (recorder.isEmpty()) {
            throw new IllegalStateException("this Java has no module jdk.jfr");
        }
        if (!recorder.get().isExported(of, here) && !Native.export(recorder.get(), of, here)) {
            throw new IllegalStateException(
                    "jdk.jfr.internal is closed (--add-exports jdk.jfr/jdk.jfr.internal=ALL-UNNAMED)");
        }
        Class<?> recording = Class.forName(of + ".JVM");
        MethodType type = MethodType.methodType(long.class);
        return MethodHandles.lookup().findStatic(recording, "counterTime", type);
    }

    /**
     * Between which numbers the difference of both counters lies: what is known of it narrows
     * with every reading of the one between two of the other. Where the JVM counts something
     * else than ticks, the readings contradict each other after a while. Some are taken even if
     * other programs have the CPU until the time is over.
     */
    private static long[] bounds(MethodHandle counter) throws Throwable {
        long lower = Long.MIN_VALUE;
        long upper = Long.MAX_VALUE;
        long start = System.nanoTime();
        long passed;
        do {
            for (int round = 0; round < 100; round++) {
                long before = Native.ticks();
                long between = (long) counter.invokeExact();
                long after = Native.ticks();
                lower = Math.max(lower, before - between);
                upper = Math.min(upper, after - between);
            }
            passed = System.nanoTime() - start;
        } while (passed < LEAST_NANOS || (upper - lower > WIDEST && passed < MOST_NANOS));
        if (lower > upper) {
            throw new IllegalStateException("the flight recorder of this JVM does not count ticks");
        }
        if (upper - lower > WIDEST) {
            throw new IllegalStateException(
                    "the flight recorder's counter is known only to within " + (upper - lower));
        }
        return new long[] {lower, upper};
    }
}
