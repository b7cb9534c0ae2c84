// SPDX-License-Identifier: Apache-2.0
package tare.moobench;

import java.io.PrintStream;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryMXBean;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/** One thread that calls, and what each call took. */
final class Caller extends Thread {
    private static final int TOLD = 100_000;

    private final MemoryMXBean memory = ManagementFactory.getMemoryMXBean();
    private final List<GarbageCollectorMXBean> collectors =
            ManagementFactory.getGarbageCollectorMXBeans();

    private final Parameters parameters;
    private final CountDownLatch ready;
    private final long[] durations;
    private final long[] heap;
    private final int[] collections;

    Caller(int number, Parameters parameters, CountDownLatch ready) {
        super("thread" + number);
        this.parameters = parameters;
        this.ready = ready;
        durations = new long[parameters.totalCalls()];
        heap = new long[parameters.totalCalls()];
        collections = new int[parameters.totalCalls()];
    }

    @Override
    public void run() {
        ready.countDown();
        try {
            ready.await();
        } catch (InterruptedException e) {
            return;
        }
        MonitoredClass application = parameters.application();
        long methodTime = parameters.methodTime();
        int depth = parameters.depth();
        long before = collections();
        for (int call = 0; call < durations.length; call++) {
            long begin = System.nanoTime();
            application.monitoredMethod(methodTime, depth);
            long end = System.nanoTime();
            durations[call] = end - begin;
            heap[call] = memory.getHeapMemoryUsage().getUsed();
            long after = collections();
            collections[call] = (int) (after - before);
            before = after;
            if (call % TOLD == TOLD - 1) {
                System.out.println(getName() + ": " + (call + 1) + " calls");
            }
        }
    }

    private long collections() {
        long all = 0;
        for (GarbageCollectorMXBean collector : collectors) {
            all += collector.getCollectionCount();
        }
        return all;
    }

    /** Lines of name;nanoseconds;bytes of heap in use;collections since the call before. */
    void write(PrintStream out) {
        for (int call = 0; call < durations.length; call++) {
            out.println(
                    getName() + ';' + durations[call] + ';' + heap[call] + ';' + collections[call]);
        }
    }
}
