// SPDX-License-Identifier: Apache-2.0
package tare.log;

/** Channels by their numbers, as the agent weaves them into methods; not for programs. */
public final class Probe {
    /** Whether events can be logged at all. */
    public static final boolean IS_THERE;

    /**
     * Calls by the number of a channel, where they are counted; a few of several threads at once
     * may be missed.
     */
    public static final int[] CALLS = new int[1 << 16];

    private static final long MODES;

    static {
        // A first channel brings the memory; on this one the agent says what it does.
        MODES = TareLog.isUsable() && open("tare-log") >>> 2 != 0 ? Native.status(Native.MODES) : 0;
        IS_THERE = MODES != 0;
    }

    private Probe() {}

    /** Why {@link #IS_THERE} is not. */
    public static String why() {
        return Native.IS_THERE ? "there is no shared memory" : Native.FOUND;
    }

    /** The channel of this name, for {@link #log}; 0 where there is no place for it. */
    public static int open(String name) {
        return open(name, null);
    }

    /** As above; {@code options} may be null. */
    public static int open(String name, Options options) {
        return TareLog.isUsable() ? Native.open(name, options) : 0;
    }

    public static void close(int channel) {
        if (IS_THERE) {
            Native.close(channel);
        }
    }

    /** Logs an event with nothing to say. */
    public static void log(int channel) {
        log(channel, 0);
    }

    /** Logs an event, where events can be logged. */
    public static void log(int channel, long payload) {
        if (IS_THERE) {
            Channel.log(MODES + (channel >>> 2), channel, payload);
        }
    }

    /** One more call of the method that has this channel. */
    public static void count(int channel) {
        CALLS[channel >>> 2]++;
    }
}
