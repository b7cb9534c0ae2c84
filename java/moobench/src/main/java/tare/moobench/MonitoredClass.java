// SPDX-License-Identifier: Apache-2.0
package tare.moobench;

/** What is called and timed: MooBench's interface of the same name. */
public interface MonitoredClass {
    /**
     * Calls itself until the depth is 1, and is busy there.
     *
     * @param methodTime nanoseconds to be busy
     * @param recDepth calls inside of one another
     * @return the time when it was no longer busy
     */
    long monitoredMethod(long methodTime, int recDepth);
}
