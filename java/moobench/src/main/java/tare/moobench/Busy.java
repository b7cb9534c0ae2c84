// SPDX-License-Identifier: Apache-2.0
package tare.moobench;

/** What the deepest call does. */
final class Busy {
    private Busy() {}

    /** Is busy for {@code methodTime} nanoseconds; the time when it no longer is. */
    static long until(long methodTime) {
        long end = System.nanoTime() + methodTime;
        long now;
        do {
            now = System.nanoTime();
        } while (now < end);
        return now;
    }
}
