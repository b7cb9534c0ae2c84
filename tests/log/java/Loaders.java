// SPDX-License-Identifier: Apache-2.0
// What tests/log/test_java_loaders.py runs: java Loaders.java JAR COUNT EVENTS: so many class
// loaders, one after the other, with a tare-log.jar of their own; code of each logs so many
// numbers, on the main thread and on one that outlives them. Prints how many loaders went.

import java.lang.ref.WeakReference;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

public class Loaders {
    public static void main(String[] arguments) throws Exception {
        Path jar = Path.of(arguments[0]);
        int count = Integer.parseInt(arguments[1]);
        int events = Integer.parseInt(arguments[2]);
        ExecutorService pool = Executors.newSingleThreadExecutor();
        List<WeakReference<ClassLoader>> loaders = new ArrayList<>();
        for (int place = 0; place < count; place++) {
            loaders.add(deploy(jar, "loader " + place, events, pool));
        }
        for (int round = 0; round < 50 && gone(loaders) < count; round++) {
            System.gc();
            Thread.sleep(20);
        }
        System.out.println(gone(loaders));
        pool.shutdown();
    }

    private static long gone(List<WeakReference<ClassLoader>> loaders) {
        return loaders.stream().filter(loader -> loader.refersTo(null)).count();
    }

    private static WeakReference<ClassLoader> deploy(
            Path jar, String name, int events, ExecutorService pool) throws Exception {
        ClassLoader platform = ClassLoader.getPlatformClassLoader();
        try (var loader = new URLClassLoader(new URL[] {jar.toUri().toURL()}, platform)) {
            Class<?> log = loader.loadClass("tare.log.TareLog");
            Object channel = log.getMethod("open", String.class).invoke(null, name);
            var method = channel.getClass().getMethod("log", long.class);
            for (long number = 0; number < events; number++) {
                method.invoke(channel, number);
            }
            pool.submit(
                            () -> {
                                for (long number = 0; number < events; number++) {
                                    method.invoke(channel, -number);
                                }
                                return null;
                            })
                    .get();
            return new WeakReference<>(loader);
        }
    }
}
