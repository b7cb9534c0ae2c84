// SPDX-License-Identifier: Apache-2.0
// What tests/log/test_java_loaders.py runs: java Hosts.java JAR CLASSES, with the agent: hosts of
// plug-ins, one after the other, run com.acme.Acme of CLASSES for a millisecond.

import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;

public class Hosts {
    /** Asks its parent for what it does not have. */
    static class Usual extends URLClassLoader {
        Usual(URL... urls) {
            super(urls, ClassLoader.getPlatformClassLoader());
        }
    }

    /** Asks its parent for what it does not have, and for Java's. */
    static class HomeFirst extends Usual {
        HomeFirst(URL... urls) {
            super(urls);
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            synchronized (getClassLoadingLock(name)) {
                Class<?> found = findLoadedClass(name);
                if (found != null) {
                    return found;
                }
                return name.startsWith("java.") ? super.loadClass(name, resolve) : atHome(name);
            }
        }

        Class<?> atHome(String name) throws ClassNotFoundException {
            try {
                return findClass(name);
            } catch (ClassNotFoundException e) {
                return super.loadClass(name, false);
            }
        }
    }

    /** Asks its parent for Java's alone. */
    static class Closed extends HomeFirst {
        Closed(URL... urls) {
            super(urls);
        }

        @Override
        Class<?> atHome(String name) throws ClassNotFoundException {
            return findClass(name);
        }
    }

    public static void main(String[] arguments) throws Exception {
        URL jar = Path.of(arguments[0]).toUri().toURL();
        URL classes = Path.of(arguments[1]).toUri().toURL();
        run(new HomeFirst(jar, classes));
        run(new Closed(classes));
        run(new Usual(classes));
    }

    private static void run(URLClassLoader loader) throws Exception {
        try (loader) {
            Class<?> acme = loader.loadClass("com.acme.Acme");
            acme.getMethod("main", String[].class).invoke(null, (Object) new String[] {"1"});
        }
    }
}
