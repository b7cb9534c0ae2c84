// SPDX-License-Identifier: Apache-2.0
package tare.log;

/**
 * A named stream of events. Each of its methods may be called by any thread at any time; none
 * fails because of what becomes of an event.
 */
public final class Channel implements AutoCloseable {
    /** What the segment says of a channel's events. */
    private static final byte DISCARDED = 0;

    private static final byte IN_RING = 1;

    private final String name;

    /** The channel's number and the mark of a short event, as in C. */
    private final int tag;

    /** Where it stands what is done with events; 0 where all are discarded. */
    private final long mode;

    Channel(String name, int tag, long modes) {
        this.name = name;
        this.tag = tag;
        mode = modes == 0 ? 0 : modes + (tag >>> 2);
    }

    /** Logs {@code payload} now. */
    public void log(long payload) {
        if (mode != 0) {
            log(mode, tag, payload);
        }
    }

    static void log(long mode, int tag, long payload) {
        try {
            byte what = Memory.getByte(mode);
            if (what == DISCARDED) {
                return;
            }
            Thread thread = Thread.currentThread();
            Writer writer = Writer.of(thread);
            if (writer == null) {
                if (VirtualThreads.is(thread)) {
                    VirtualThreads.log(thread, tag, payload);
                    return;
                }
                writer = Writer.mine();
            }
            long shifted = payload << Writer.PAYLOAD_SHIFT;
            boolean isShort = shifted >> Writer.PAYLOAD_SHIFT == payload;
            if (writer == null || what != IN_RING || !isShort || !writer.write(shifted | tag)) {
                Writer.logSlowly(tag, payload);
            }
        } catch (Throwable e) {
            throw unexpected(e);
        }
    }

    /** Logs these bytes now, of which the first 4096 are kept. */
    public void log(byte[] bytes) {
        log(bytes, 0, bytes.length);
    }

    /** Logs {@code length} bytes from {@code from} on, of which the first 4096 are kept. */
    public void log(byte[] bytes, int from, int length) {
        java.util.Objects.checkFromIndexSize(from, length, bytes.length);
        if (mode == 0) {
            return;
        }
        try {
            if (Memory.getByte(mode) == DISCARDED) {
                return;
            }
            Thread thread = Thread.currentThread();
            if (VirtualThreads.is(thread)) {
                VirtualThreads.log(thread, tag, bytes, from, length);
            } else {
                Writer.logSlowly(tag, bytes, from, length);
            }
        } catch (Throwable e) {
            throw unexpected(e);
        }
    }

    /** Discards the channel's events, until it is opened again. */
    @Override
    public void close() {
        if (mode != 0) {
            Native.close(tag);
        }
    }

    /** The name that it was opened with. */
    public String name() {
        return name;
    }

    @Override
    public String toString() {
        return "channel " + name;
    }

    /** Handles may throw anything; what they do here throws only errors of the JVM's own. */
    private static Error unexpected(Throwable e) {
        return e instanceof Error ? (Error) e : new AssertionError(e);
    }
}
