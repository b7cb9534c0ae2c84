// SPDX-License-Identifier: Apache-2.0
package tare.log;

/** Says what was found and chosen. {@code java -jar tare-log.jar} prints it. */
public final class Diagnosis {
    private Diagnosis() {}

    /** Prints it for the Java that runs this. */
    public static void main(String[] arguments) {
        TareLog.open("diagnosis").close();
        System.out.print(text());
    }

    static String text() {
        StringBuilder out = new StringBuilder();
        line(out, "java", System.getProperty("java.version") + ", " + System.getProperty("java.vm.name"));
        line(out, "library", Native.FOUND);
        if (!Native.IS_THERE) {
            return out.toString();
        }
        line(out, "memory", Memory.FOUND);
        line(out, "clock", clock());
        line(out, "virtual threads", VirtualThreads.FOUND);
        boolean hasSegment = Native.status(Native.MODES) != 0;
        line(out, "rings", hasSegment ? Native.status(Native.RING_BYTES) + " bytes" : "none yet");
        line(out, "collector", collector(hasSegment));
        return out.toString();
    }

    /** What the process's events have their times from, by the numbers of the segment. */
    private static String clock() {
        switch ((int) Native.status(Native.CLOCK)) {
            case 1:
                return "ticks in program order (tscp), read by the library";
            case 2:
                return "CLOCK_MONOTONIC_RAW, read by the library";
            case 3:
                return "CLOCK_MONOTONIC_RAW, read by the library: no tick counter is reliable";
            default:
                return Clock.FOUND;
        }
    }

    private static String collector(boolean hasSegment) {
        if (System.getenv("TARE_LOG") == null) {
            return "none, so events are discarded; start with: tare log run -- java ...";
        }
        boolean isServed = hasSegment && Native.status(Native.IS_SERVED) != 0;
        return System.getenv("TARE_LOG") + (isServed ? "" : ": does not collect from this process");
    }

    private static void line(StringBuilder out, String what, String found) {
        out.append(what).append(": ").append(found).append('\n');
    }
}
