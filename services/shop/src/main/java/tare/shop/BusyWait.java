// SPDX-License-Identifier: Apache-2.0
package tare.shop;

/** Keeps a CPU busy for a given time. */
final class BusyWait {
    private BusyWait() {}

    /** The compiler cannot remove this loop: every turn reads the clock again. */
    static void spin(long nanoseconds) {
        long start = System.nanoTime();
        while (System.nanoTime() - start < nanoseconds) {}
    }
}
