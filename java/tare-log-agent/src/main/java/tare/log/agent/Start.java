// SPDX-License-Identifier: Apache-2.0
package tare.log.agent;

import java.lang.instrument.Instrumentation;
import tare.log.Probe;

/** The agent, in the bootstrap class loader. */
public final class Start {
    private Start() {}

    /** Weaves the classes that are loaded from now on. */
    public static void start(String text, Instrumentation instrumentation) {
        Arguments arguments;
        try {
            arguments = Arguments.parse(text);
        } catch (IllegalArgumentException e) {
            say(e.getMessage());
            System.exit(2);
            return;
        }
        if (!Probe.IS_THERE) {
            say("methods are not logged; " + Probe.why());
            return;
        }
        Methods methods = new Methods(arguments.options());
        Weaver weaver = new Weaver(arguments.filter(), methods, arguments.limit() > 0);
        instrumentation.addTransformer(weaver, true);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> sayIfNone(methods, text)));
        if (arguments.limit() > 0) {
            new Limit(arguments.limit(), methods, instrumentation).start();
        }
    }

    private static void sayIfNone(Methods methods, String text) {
        if (!methods.hadAny()) {
            say("no method of the program matched " + text);
        }
    }

    static void say(String what) {
        System.err.println("tare-log-agent: " + what);
    }
}
