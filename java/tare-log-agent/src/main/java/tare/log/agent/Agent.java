// SPDX-License-Identifier: Apache-2.0
package tare.log.agent;

import java.io.File;
import java.lang.instrument.Instrumentation;
import java.util.jar.JarFile;

/**
 * {@code -javaagent:tare-log-agent.jar=include=com.acme.*}: logs when methods begin and end.
 * This class only hands over to those of the bootstrap class loader, which all code can see.
 */
public final class Agent {
    private Agent() {}

    /** Called by the JVM, before the program. */
    public static void premain(String arguments, Instrumentation instrumentation) throws Exception {
        File jar =
                new File(Agent.class.getProtectionDomain().getCodeSource().getLocation().toURI());
        File library = new File(jar.getCanonicalFile().getParentFile(), "../lib/libtare_log.so");
        if (System.getProperty("tare.log.library") == null
                && System.getenv("TARE_LOG_LIBRARY") == null
                && library.exists()) {
            System.setProperty("tare.log.library", library.getCanonicalPath());
        }
        try (JarFile classes = new JarFile(jar)) {
            instrumentation.appendToBootstrapClassLoaderSearch(classes);
        }
        Class.forName("tare.log.agent.Start", true, null)
                .getMethod("start", String.class, Instrumentation.class)
                .invoke(null, arguments, instrumentation);
    }
}
