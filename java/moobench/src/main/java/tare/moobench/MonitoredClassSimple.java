// SPDX-License-Identifier: Apache-2.0
package tare.moobench;

/** Without any logging of its own: the baseline, and what agents are put on. */
public final class MonitoredClassSimple implements MonitoredClass {
    @Override
    public long monitoredMethod(long methodTime, int recDepth) {
        if (recDepth > 1) {
            return monitoredMethod(methodTime, recDepth - 1);
        }
        return Busy.until(methodTime);
    }
}
