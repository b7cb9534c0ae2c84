// SPDX-License-Identifier: Apache-2.0
package tare.moobench;

import java.io.BufferedOutputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;

/**
 * MooBench's experiment, written anew from its published parameters: its jar is not on Maven
 * Central. The same command line, what is timed and what is not, and the same file of results.
 */
public final class Benchmark {
    private static final int CHUNK = 128 << 20;
    private static final int PAUSES = 4;

    private Benchmark() {}

    public static void main(String[] arguments) throws InterruptedException, IOException {
        Parameters parameters;
        try {
            parameters = Parameters.parse(arguments);
        } catch (IllegalArgumentException e) {
            System.err.println(e.getMessage());
            System.exit(2);
            return;
        }
        try (PrintStream out =
                new PrintStream(
                        new BufferedOutputStream(new FileOutputStream(parameters.output())),
                        false,
                        StandardCharsets.UTF_8)) {
            if (parameters.runnable() != null) {
                parameters.runnable().run();
            }
            if (!parameters.isQuick()) {
                calmDown();
            }
            run(parameters, out);
            if (out.checkError()) {
                System.err.println(parameters.output() + ": was not written whole");
                System.exit(1);
            }
        }
        if (parameters.mustEnd()) {
            System.exit(0);
        }
    }

    private static void run(Parameters parameters, PrintStream out) throws InterruptedException {
        CountDownLatch ready = new CountDownLatch(parameters.threads());
        List<Caller> callers = new ArrayList<>();
        for (int number = 0; number < parameters.threads(); number++) {
            callers.add(new Caller(number, parameters, ready));
        }
        callers.forEach(Thread::start);
        for (Caller caller : callers) {
            caller.join();
        }
        callers.forEach(caller -> caller.write(out));
    }

    /** The heap grows to what it may have, and what the start has set going comes to an end. */
    private static void calmDown() throws InterruptedException {
        for (int pause = 0; pause < PAUSES; pause++) {
            List<byte[]> chunks = new ArrayList<>();
            try {
                while (true) {
                    chunks.add(new byte[CHUNK]);
                }
            } catch (OutOfMemoryError e) {
                chunks.clear();
            }
            System.gc();
            Thread.sleep(5000);
        }
    }
}
