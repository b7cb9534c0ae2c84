// SPDX-License-Identifier: Apache-2.0
package tare.hello;

/** Keeps a CPU busy for a given time. */
final class BusyWait {
    /** Written by every spin: a result that somebody may read cannot be optimised away. */
    static volatile long result;

    private BusyWait() {}

    /** Computes until `nanoseconds` have passed, and returns how many turns that took. */
    static long spin(long nanoseconds) {
        long start = System.nanoTime();
        long turns = 0;
        long mixed = start;
        while (System.nanoTime() - start < nanoseconds) {
            // xorshift (Marsaglia 2003): each turn needs the one before.
            mixed ^= mixed << 13;
            mixed ^= mixed >>> 7;
            mixed ^= mixed << 17;
            turns++;
        }
        result = mixed;
        return turns;
    }
}
