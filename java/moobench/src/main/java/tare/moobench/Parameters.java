// SPDX-License-Identifier: Apache-2.0
package tare.moobench;

import java.io.File;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/**
 * The command line of MooBench.
 *
 * @param totalCalls calls that each thread makes
 * @param methodTime nanoseconds that the deepest call is busy
 * @param threads how many make calls at once
 * @param depth calls inside of one another
 * @param output the file of results
 * @param isQuick whether the machine is not given time to calm down first
 * @param mustEnd whether the JVM ends though others of its threads run
 * @param application the class that is called
 * @param runnable a class to be run before; null for none
 */
record Parameters(
        int totalCalls,
        long methodTime,
        int threads,
        int depth,
        File output,
        boolean isQuick,
        boolean mustEnd,
        MonitoredClass application,
        Runnable runnable) {
    private static final Map<String, String> NAMES =
            Map.ofEntries(
                    Map.entry("--total-calls", "-c"),
                    Map.entry("--method-time", "-m"),
                    Map.entry("--total-threads", "-t"),
                    Map.entry("--recursion-depth", "-d"),
                    Map.entry("--output-filename", "-o"),
                    Map.entry("--application", "-a"),
                    Map.entry("--runnable", "-r"));
    private static final Map<String, String> SWITCHES =
            Map.of("--quickstart", "-q", "--force-terminate", "-f");

    static final String USAGE =
            "usage: Benchmark -c CALLS -m NANOSECONDS -t THREADS -d DEPTH -o FILE"
                    + " [-q] [-f] [-a CLASS] [-r CLASS]";

    /** IllegalArgumentException where one is missing or makes no sense. */
    static Parameters parse(String[] arguments) {
        Map<String, String> values = new HashMap<>();
        Set<String> switches = new HashSet<>();
        for (int place = 0; place < arguments.length; place++) {
            String word = arguments[place];
            String letter = SWITCHES.getOrDefault(word, NAMES.getOrDefault(word, word));
            if (SWITCHES.containsValue(letter)) {
                switches.add(letter);
            } else if (NAMES.containsValue(letter) && place + 1 < arguments.length) {
                values.put(letter, arguments[++place]);
            } else {
                throw new IllegalArgumentException(word + ": " + USAGE);
            }
        }
        String runnable = values.get("-r");
        return new Parameters(
                (int) number(values, "-c", 1),
                number(values, "-m", 0),
                (int) number(values, "-t", 1),
                (int) number(values, "-d", 1),
                new File(needed(values, "-o")),
                switches.contains("-q"),
                switches.contains("-f"),
                made(values.getOrDefault("-a", MonitoredClassSimple.class.getName()), MonitoredClass.class),
                runnable == null ? null : made(runnable, Runnable.class));
    }

    private static String needed(Map<String, String> values, String name) {
        String value = values.get(name);
        if (value == null) {
            throw new IllegalArgumentException("no " + name + ": " + USAGE);
        }
        return value;
    }

    private static long number(Map<String, String> values, String name, long least) {
        String value = needed(values, name);
        try {
            long number = Long.parseLong(value);
            if (number >= least && number <= Integer.MAX_VALUE) {
                return number;
            }
        } catch (NumberFormatException e) {
            // as what follows
        }
        throw new IllegalArgumentException(name + " " + value + ": " + USAGE);
    }

    private static <T> T made(String name, Class<T> type) {
        try {
            return type.cast(Class.forName(name).getDeclaredConstructor().newInstance());
        } catch (ReflectiveOperationException | ClassCastException e) {
            throw new IllegalArgumentException(name + " is no " + type.getSimpleName() + ": " + e, e);
        }
    }
}
