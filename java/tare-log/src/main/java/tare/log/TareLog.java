// SPDX-License-Identifier: Apache-2.0
package tare.log;

import java.util.Objects;

/**
 * Event logging in some ten nanoseconds: time and number go into memory that is shared with
 * another process, which survives this one (docs/log.md).
 *
 * <pre>{@code
 * private static final Channel REQUESTS = TareLog.open("requests");
 *
 * REQUESTS.log(42);
 * }</pre>
 *
 * Nothing here fails: where there is no library for this machine, or nobody collects, events are
 * discarded, and {@link #diagnose} says why.
 */
public final class TareLog {
    private TareLog() {}

    /** The channel of this name; made if there is none. */
    public static Channel open(String name) {
        return channel(name, null);
    }

    /** The channel of this name, whose events are from now on treated so. */
    public static Channel open(String name, Options options) {
        return channel(name, Objects.requireNonNull(options, "options"));
    }

    /** A span of this name, on the channels NAME&gt; and NAME&lt;. */
    public static Span span(String name) {
        return new Span(open(name + ">"), open(name + "<"));
    }

    /** As above, with both channels treated so. */
    public static Span span(String name, Options options) {
        return new Span(open(name + ">", options), open(name + "<", options));
    }

    private static Channel channel(String name, Options options) {
        Objects.requireNonNull(name, "name");
        if (!isUsable()) {
            return new Channel(name, 0, 0);
        }
        int tag = Native.open(name, options);
        long modes = tag >>> 2 == 0 ? 0 : Native.status(Native.MODES);
        return new Channel(name, tag, modes);
    }

    /** Chooses all that a first event needs, which must not be in the middle of one. */
    static boolean isUsable() {
        return Native.IS_THERE && Memory.IS_THERE && Clock.FOUND != null;
    }

    /** What was found on this machine and chosen, a line each. */
    public static String diagnose() {
        return Diagnosis.text();
    }
}
