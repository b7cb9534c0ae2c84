// SPDX-License-Identifier: Apache-2.0
package tare.log.agent;

import java.lang.instrument.Instrumentation;
import java.lang.instrument.UnmodifiableClassException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import tare.log.Channel;
import tare.log.Probe;
import tare.log.TareLog;

/** Takes the logging out of methods that are called more often in a second than is allowed. */
final class Limit extends Thread {
    private final long limit;
    private final Methods methods;
    private final Instrumentation instrumentation;
    private final Channel said = TareLog.open("tare-log");

    Limit(long limit, Methods methods, Instrumentation instrumentation) {
        super("tare-log limit");
        setDaemon(true);
        this.limit = limit;
        this.methods = methods;
        this.instrumentation = instrumentation;
    }

    @Override
    public void run() {
        int[] before = Probe.CALLS.clone();
        long then = System.nanoTime();
        while (true) {
            try {
                sleep(1000);
            } catch (InterruptedException e) {
                return;
            }
            long now = System.nanoTime();
            int[] after = Probe.CALLS.clone();
            for (Methods.Method method : methods.all()) {
                int place = method.begin >>> 2;
                int calls = after[place] - before[place];
                double inSecond = Integer.toUnsignedLong(calls) * 1e9 / (now - then);
                if (inSecond > limit && !method.isOff) {
                    method.isOff = true;
                    String why = String.format("%s: %,.0f calls/s", method.name, inSecond);
                    tell(why + ", more than limit=" + limit + ": it is no longer logged");
                    weaveAgain(method);
                }
            }
            then = now;
            before = after;
        }
    }

    private void tell(String what) {
        Start.say(what);
        said.log(what.getBytes(StandardCharsets.UTF_8));
    }

    private void weaveAgain(Methods.Method method) {
        Class<?>[] classes =
                Arrays.stream(instrumentation.getAllLoadedClasses())
                        .filter(type -> type.getName().equals(method.type))
                        .filter(type -> type.getClassLoader() == method.loader.get())
                        .toArray(Class<?>[]::new);
        try {
            instrumentation.retransformClasses(classes);
        } catch (UnmodifiableClassException | LinkageError e) {
            tell(method.name + ": cannot stop logging it: " + e);
        }
    }
}
