// SPDX-License-Identifier: Apache-2.0
package tare.moobench;

import java.util.Locale;
import tare.log.Channel;
import tare.log.Options;
import tare.log.TareLog;

/**
 * Logs the depth when each call begins and ends. The system properties tare.moobench.handler,
 * .policy and .codec say what is done with the events, by the names of {@link Options}.
 */
public final class MonitoredClassTare implements MonitoredClass {
    private static final Options OPTIONS =
            Options.DEFAULT
                    .withHandler(Options.Handler.valueOf(named("handler", "BUFFERED")))
                    .withPolicy(Options.Policy.valueOf(named("policy", "WAIT")))
                    .withCodec(Options.Codec.valueOf(named("codec", "ANY")));

    private static final Channel IN = TareLog.open("monitoredMethod in", OPTIONS);
    private static final Channel OUT = TareLog.open("monitoredMethod out", OPTIONS);

    private static String named(String what, String usual) {
        return System.getProperty("tare.moobench." + what, usual).toUpperCase(Locale.ROOT);
    }

    @Override
    public long monitoredMethod(long methodTime, int recDepth) {
        IN.log(recDepth);
        try {
            if (recDepth > 1) {
                return monitoredMethod(methodTime, recDepth - 1);
            }
            return Busy.until(methodTime);
        } finally {
            OUT.log(recDepth);
        }
    }
}
