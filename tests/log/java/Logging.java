// SPDX-License-Identifier: Apache-2.0
// What tests/log/test_java.py runs: java Logging.java WHAT [NUMBER...]

import cp.swig.cloud_profiler;
import cp.swig.handler_type;
import cp.swig.log_format;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.function.IntConsumer;
import tare.log.Channel;
import tare.log.Options;
import tare.log.Span;
import tare.log.TareLog;

public class Logging {
    public static void main(String[] arguments) throws Exception {
        String[] rest = java.util.Arrays.copyOfRange(arguments, 1, arguments.length);
        switch (arguments[0]) {
            case "payloads" -> payloads();
            case "threads" -> threads(Integer.parseInt(rest[0]), Long.parseLong(rest[1]));
            case "churn" -> churn(Integer.parseInt(rest[0]));
            case "burst" -> burst(Long.parseLong(rest[0]), Options.Policy.valueOf(rest[1]));
            case "endless" -> endless(Path.of(rest[0]), Integer.parseInt(rest[1]));
            case "virtual" -> virtual(Integer.parseInt(rest[0]), Integer.parseInt(rest[1]));
            case "moved" -> {
                Options.Policy policy = Options.Policy.valueOf(rest[2]);
                moved(Integer.parseInt(rest[0]), Integer.parseInt(rest[1]), policy);
            }
            case "stack" -> stack(Integer.parseInt(rest[0]));
            case "vector" -> vector();
            case "lines" -> lines();
            case "cloudprofiler" -> cloudprofiler();
            case "restless" -> restless();
            case "carried" -> carried();
            case "leave" -> leave(rest[0]);
            case "diagnose" -> System.out.print(TareLog.diagnose());
            default -> throw new IllegalArgumentException(arguments[0]);
        }
    }

    /** As tests/log/programs/lines.c. */
    static void lines() throws Exception {
        Channel numbers = TareLog.open("numbers");
        Channel texts = TareLog.open("texts", Options.DEFAULT.withPolicy(Options.Policy.OVERWRITE));
        System.out.println("ready");
        while (System.in.read() >= 0) {
            for (int number = 0; number < 64; number++) {
                numbers.log(number);
                numbers.log((long) number << 46);
                texts.log(new byte[64 * number]);
            }
            TareLog.open("others").close();
            System.out.println("done");
        }
    }

    /** As tests/log/programs/restless.py. */
    static void restless() throws Exception {
        Channel channel = TareLog.open("restless");
        System.out.println("ready");
        while (System.in.available() == 0) {
            for (int number = 0; number < 1000; number++) {
                channel.log(number);
            }
        }
    }

    /**
     * On one thread of the kernel "first" fills the ring and more, then "second" loses an event
     * and, behind a line on stdin, logs 100.
     */
    static void carried() throws Exception {
        Channel channel = TareLog.open("carried");
        var start = Class.forName("java.lang.Thread$Builder").getMethod("start", Runnable.class);
        virtual("first", start, () -> {
            for (int number = 0; number < 5000; number++) {
                channel.log(number);
            }
        }).join();
        var line = new java.util.concurrent.CountDownLatch(1);
        var lost = new java.util.concurrent.CountDownLatch(1);
        Thread second = virtual("second", start, () -> {
            channel.log(9000);
            lost.countDown();
            try {
                line.await();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
            for (int number = 0; number < 100; number++) {
                channel.log(10_000 + number);
            }
        });
        lost.await();
        System.out.println("full");
        System.in.read();
        line.countDown();
        second.join();
    }

    private static Thread virtual(String name, java.lang.reflect.Method start, Runnable what)
            throws Exception {
        Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
        Class<?> type = Class.forName("java.lang.Thread$Builder$OfVirtual");
        builder = type.getMethod("name", String.class).invoke(builder, name);
        return (Thread) start.invoke(builder, what);
    }

    /** Logs an event, and ends with code 3. */
    static void leave(String how) {
        TareLog.open("leave").log(1);
        switch (how) {
            case "exit" -> System.exit(3);
            case "halt" -> Runtime.getRuntime().halt(3);
            default -> throw new IllegalArgumentException(how);
        }
    }

    /** As tests/log/programs/payloads.c, and spans. */
    static void payloads() {
        Channel numbers = TareLog.open("numbers");
        long edge = 1L << 45;
        long[] all = {0, -1, edge - 1, -edge, edge, Long.MAX_VALUE, Long.MIN_VALUE};
        for (long number : all) {
            numbers.log(number);
        }
        Channel texts = TareLog.open("texts, \"quoted\"");
        texts.log("hello, world".getBytes(StandardCharsets.UTF_8));
        texts.log(new byte[0]);
        texts.log("x".repeat(5000).getBytes(StandardCharsets.UTF_8));
        texts.log("before, in, after".getBytes(StandardCharsets.UTF_8), 8, 2);
        Channel tenth = TareLog.open("tenth", Options.DEFAULT.downsampled(10));
        Channel some = TareLog.open("some", Options.DEFAULT.xOfY(3, 8));
        for (int number = 0; number < 100; number++) {
            tenth.log(number);
            some.log(number);
        }
        Channel never = TareLog.open("never", Options.DEFAULT.withHandler(Options.Handler.NULL));
        never.log(1);
        never.log(new byte[9]);
        Span span = TareLog.span("größe");
        try (Span outer = span.enter(1)) {
            try (Span inner = span.enter()) {
                numbers.log(42);
            }
            outer.end(2);
        }
        numbers.close();
        numbers.log(43);
        TareLog.open("numbers");
        numbers.log(44);
    }

    /** What tests/log/vector.txt says; ends with its input. */
    static void vector() throws java.io.IOException {
        Channel numbers = TareLog.open("numbers");
        Channel texts = TareLog.open("texts");
        Span work = TareLog.span("work");
        long edge = 1L << 45;
        long[] all = {0, -1, edge - 1, -edge, edge, -edge - 1, Long.MAX_VALUE, Long.MIN_VALUE};
        for (long number : all) {
            numbers.log(number);
        }
        for (String text : new String[] {"", "a", "fifteen letters", "sixteen letters!", "seventeen letters"}) {
            texts.log(text.getBytes(StandardCharsets.UTF_8));
        }
        work.begin(42);
        work.end(42);
        System.out.println("ready");
        System.in.read();
    }

    static void cloudprofiler() {
        long ids = cloud_profiler.openChannel("ids", log_format.ASCII, handler_type.IDENTITY);
        long packed = cloud_profiler.openChannel("ids", log_format.ZSTD_TSC, handler_type.BUFFER_IDENTITY_COMP);
        long some = cloud_profiler.openChannel("some", log_format.BINARY, handler_type.DOWNSAMPLE);
        long xoy = cloud_profiler.openChannel("xoy", log_format.BINARY, handler_type.XOY);
        long none = cloud_profiler.openChannel("none", log_format.ASCII, handler_type.NULLH);
        long ends = cloud_profiler.openChannel("ends", log_format.ASCII, handler_type.FIRSTLAST);
        long middle = cloud_profiler.openChannel("middle", log_format.ASCII, handler_type.MEDIAN);
        long count = cloud_profiler.openChannel("count", log_format.ASCII, handler_type.FASTPERIODICCOUNTER);
        System.out.println(cloud_profiler.parameterizeChannel(middle, 0, 5));
        System.out.println(cloud_profiler.parameterizeChannel(count, 0, 6_000_000_000L));
        System.out.println(cloud_profiler.parameterizeChannel(some, 0, "1K"));
        System.out.println(cloud_profiler.parameterizeChannel(xoy, 0, 3));
        System.out.println(cloud_profiler.parameterizeChannel(xoy, 1, 8));
        System.out.println(cloud_profiler.isOpen(none) + " " + cloud_profiler.parameterizeChannel(none, 0, 1));
        System.out.println(cloud_profiler.isOpen(none) + " " + cloud_profiler.isOpen(99L << 32));
        for (long tuple = 0; tuple < 2000; tuple++) {
            cloud_profiler.logTS(ids, tuple);
            cloud_profiler.logTS(packed, -2 - tuple);
            cloud_profiler.logTS(some, tuple);
            cloud_profiler.logTS(xoy, tuple);
            cloud_profiler.logTS(none, tuple);
            cloud_profiler.logTS(ends, tuple);
            cloud_profiler.logTS(middle, tuple);
            cloud_profiler.logTS(count, tuple);
            cloud_profiler.nologTS(ids, tuple);
        }
        cloud_profiler.logTS(ids, -1);
        cloud_profiler.logTS(ids, 5);
        System.out.println(cloud_profiler.isOpen(ids));
        System.out.println(cloud_profiler.parameterizeChannel(some, 0, "0"));
        System.out.println(cloud_profiler.parameterizeChannel(some, 0, 2));
    }

    static void threads(int threads, long events) throws InterruptedException {
        Options wait = Options.DEFAULT.withPolicy(Options.Policy.WAIT);
        Channel all = TareLog.open("all", wait);
        Thread[] running = new Thread[threads];
        for (int place = 0; place < threads; place++) {
            Channel own = TareLog.open("thread " + place, wait);
            long first = place * events;
            running[place] = new Thread(() -> {
                for (long number = 0; number < events; number++) {
                    own.log(number);
                    all.log(first + number);
                }
            }, "logger " + place);
            running[place].start();
        }
        for (Thread thread : running) {
            thread.join();
        }
    }

    /** Threads that each log once, a few at a time. */
    static void churn(int threads) throws InterruptedException {
        Channel channel = TareLog.open("churn", Options.DEFAULT.withPolicy(Options.Policy.WAIT));
        Thread[] running = new Thread[4];
        for (int number = 0; number < threads; number++) {
            int place = number % running.length;
            if (running[place] != null) {
                running[place].join();
            }
            long payload = number;
            running[place] = new Thread(() -> channel.log(payload));
            running[place].start();
        }
        for (Thread thread : running) {
            thread.join();
        }
    }

    static void burst(long events, Options.Policy policy) {
        Channel channel = TareLog.open("burst", Options.DEFAULT.withPolicy(policy));
        for (long number = 0; number < events; number++) {
            channel.log(number);
        }
    }

    /** Logs until it is killed; writes what each thread has logged last into a shared page. */
    static void endless(Path page, int threads) throws Exception {
        ByteBuffer last;
        try (FileChannel file =
                FileChannel.open(
                        page,
                        StandardOpenOption.CREATE,
                        StandardOpenOption.READ,
                        StandardOpenOption.WRITE)) {
            last = file.map(FileChannel.MapMode.READ_WRITE, 0, 4096).order(ByteOrder.LITTLE_ENDIAN);
        }
        Options wait = Options.DEFAULT.withPolicy(Options.Policy.WAIT);
        for (int thread = 0; thread < threads; thread++) {
            Channel channel = TareLog.open("thread " + thread, wait);
            int place = 128 * thread;
            new Thread(() -> {
                for (long number = 1; ; number++) {
                    channel.log(number);
                    last.putLong(place, number);
                }
            }).start();
        }
    }

    /** Each of so many virtual threads logs so often, and is often set aside in between. */
    static void virtual(int threads, int events) throws Exception {
        Options wait = Options.DEFAULT.withPolicy(Options.Policy.WAIT);
        Channel channel = TareLog.open("virtual", wait);
        Channel texts = TareLog.open("texts", wait);
        virtually(threads, thread -> {
            long first = (long) thread * events;
            Thread.currentThread().setName("v" + first);
            for (int event = 0; event < events; event++) {
                channel.log(first + event);
                if (event % 7 == 3) {
                    Thread.yield();
                } else if (event % 16 == 5) {
                    pause();
                }
            }
            texts.log(Long.toString(first).getBytes(StandardCharsets.UTF_8));
        });
    }

    /** Each number in a virtual thread of its own. */
    private static void virtually(int threads, IntConsumer work) throws Exception {
        ExecutorService executor =
                (ExecutorService)
                        Executors.class.getMethod("newVirtualThreadPerTaskExecutor").invoke(null);
        for (int thread = 0; thread < threads; thread++) {
            int number = thread;
            executor.execute(() -> work.accept(number));
        }
        executor.shutdown();
        if (!executor.awaitTermination(90, TimeUnit.SECONDS)) {
            throw new IllegalStateException("virtual threads do not come to an end");
        }
    }

    /**
     * Each of so many virtual threads is so often in a span within another of its name, both ends
     * of which have one number; and is on another carrier, as a rule, when it leaves them.
     */
    static void moved(int threads, int spans, Options.Policy policy) throws Exception {
        Channel begin = TareLog.open("moved>", Options.DEFAULT.withPolicy(policy));
        Channel end = TareLog.open("moved<", Options.DEFAULT.withPolicy(policy));
        virtually(threads, thread -> {
            long first = 2L * thread * spans;
            for (long number = first; number < first + 2L * spans; number += 2) {
                begin.log(number);
                Thread.yield();
                begin.log(number + 1);
                if (number % 64 == 0) {
                    pause();
                }
                end.log(number + 1);
                Thread.yield();
                end.log(number);
            }
        });
    }

    private static void pause() {
        try {
            Thread.sleep(0, 100_000);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Goes down to the end of the stack again and again, logging; and logs afterwards. */
    static void stack(int times) throws InterruptedException {
        Options wait = Options.DEFAULT.withPolicy(Options.Policy.WAIT);
        Channel down = TareLog.open("down", wait);
        Channel after = TareLog.open("after", wait);
        Runnable all = () -> {
            for (int time = 0; time < times; time++) {
                try {
                    descend(down, 0);
                } catch (StackOverflowError e) {
                    after.log(time);
                }
            }
        };
        Thread thread = new Thread(null, all, "deep", 300_000);
        thread.start();
        thread.join();
    }

    private static void descend(Channel channel, long depth) {
        channel.log(depth);
        descend(channel, depth + 1);
    }
}
