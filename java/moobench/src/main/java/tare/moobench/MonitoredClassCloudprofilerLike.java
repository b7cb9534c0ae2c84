// SPDX-License-Identifier: Apache-2.0
package tare.moobench;

/**
 * Logs the depth when each call begins and ends, by a native call of bench/log/cloudprofiler_like.c.
 * The system properties tare.moobench.library and .folder say where that is and where its files
 * are made; .spins whether its threads spin while they have nothing to do.
 */
public final class MonitoredClassCloudprofilerLike implements MonitoredClass {
    private static final long IN;
    private static final long OUT;

    static {
        System.load(System.getProperty("tare.moobench.library"));
        start(Boolean.getBoolean("tare.moobench.spins"));
        String folder = System.getProperty("tare.moobench.folder");
        IN = open(folder + "/in.zstd");
        OUT = open(folder + "/out.zstd");
        Runtime.getRuntime()
                .addShutdownHook(
                        new Thread(
                                () -> {
                                    close(IN);
                                    close(OUT);
                                }));
    }

    private static native void start(boolean spins);

    private static native long open(String path);

    private static native void log(long channel, long tuple);

    private static native void close(long channel);

    @Override
    public long monitoredMethod(long methodTime, int recDepth) {
        log(IN, recDepth);
        try {
            if (recDepth > 1) {
                return monitoredMethod(methodTime, recDepth - 1);
            }
            return Busy.until(methodTime);
        } finally {
            log(OUT, recDepth);
        }
    }
}
