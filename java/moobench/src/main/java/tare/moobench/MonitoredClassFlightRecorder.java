// SPDX-License-Identifier: Apache-2.0
package tare.moobench;

import jdk.jfr.Event;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;

/** Commits an event of the JVM's own flight recorder for each call. */
public final class MonitoredClassFlightRecorder implements MonitoredClass {
    @Name("tare.moobench.Call")
    @StackTrace(false)
    static final class Call extends Event {
        int depth;
    }

    @Override
    public long monitoredMethod(long methodTime, int recDepth) {
        Call call = new Call();
        call.begin();
        try {
            if (recDepth > 1) {
                return monitoredMethod(methodTime, recDepth - 1);
            }
            return Busy.until(methodTime);
        } finally {
            call.depth = recDepth;
            call.commit();
        }
    }
}
