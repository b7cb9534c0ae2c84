// SPDX-License-Identifier: Apache-2.0
package tare.log;

/** What the agent weaves into methods; not for programs. */
public final class Probe {
    /** Whether events can be logged at all. */
    public static final boolean IS_THERE;

    /** Calls by method, where they are counted; a few of several threads at once may be missed. */
    public static final int[] CALLS = new int[1 << 13];

    private static final long MODES;

    static {
        MODES = TareLog.isUsable() && open("tare-log-agent") >>> 2 != 0 ? Native.status(Native.MODES) : 0;
        IS_THERE = MODES != 0;
    }

    private Probe() {}

    /** Why {@link #IS_THERE} is not. */
    public static String why() {
        return Native.IS_THERE ? "there is no shared memory" : Native.FOUND;
    }

    /** The channel of this name, for {@link #log}. */
    public static int open(String name) {
        return Native.open(name.getBytes(java.nio.charset.StandardCharsets.UTF_8), null);
    }

    /** Logs an event with nothing to say. */
    public static void log(int channel) {
        Channel.log(MODES + (channel >>> 2), channel, 0);
    }

    /** One more call of the method at this place. */
    public static void count(int place) {
        CALLS[place]++;
    }
}
