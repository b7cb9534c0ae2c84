// SPDX-License-Identifier: Apache-2.0
package tare.log;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * What is done with the events of a channel; what is not said is the default.
 *
 * @param handler what becomes of an event
 * @param policy what becomes of one for which there is no room
 * @param codec how the collector compresses events
 * @param a parameter of the handler, unsigned
 * @param b parameter of the handler, unsigned
 */
public record Options(Handler handler, Policy policy, Codec codec, int a, int b) {
    /** Every event is kept, and lost where there is no room. */
    public static final Options DEFAULT =
            new Options(Handler.BUFFERED, Policy.DROP, Codec.ANY, 0, 0);

    /** What becomes of an event. */
    public enum Handler {
        /** It is discarded. */
        NULL(1),
        /** It is kept. */
        BUFFERED(2),
        /** Every {@code a}-th of all threads together is kept. */
        DOWNSAMPLE(3),
        /** It is kept if its number modulo {@code b}, a power of two, is below {@code a}. */
        X_OF_Y(4),
        /** It is in the file when the call returns. */
        ID(5),
        /** The first is kept, and the last when the channel is closed or the process ends. */
        FIRST_LAST(6),
        /** Of every {@code a} the one in the middle by time is kept. */
        MEDIAN(7),
        /** It is counted; the first after a period writes how many there were so far. */
        PERIODIC_COUNTER(8),
        /** The same, written by the collector. */
        FAST_PERIODIC_COUNTER(9),
        /** It is kept; the collector answers at the IPv4 address {@code a}, port {@code b}. */
        FOX_START(10),
        /** It is kept, with how long the start there took to answer, b >>> 16 ms at most (1000). */
        FOX_END(11);

        private final int number;

        Handler(int number) {
            this.number = number;
        }
    }

    /** What becomes of an event for which there is no room. */
    public enum Policy {
        /** It is lost, and counted. */
        DROP,
        /** Its thread waits for room, as long as there is a collector. */
        WAIT,
        /** The oldest events of its thread are lost, and counted. */
        OVERWRITE
    }

    /** How the collector compresses events. */
    public enum Codec {
        /** As it was told. */
        ANY,
        UNCOMPRESSED,
        ZSTD,
        LZ4,
        LZO1X
    }

    public Options withHandler(Handler other) {
        return new Options(other, policy, codec, a, b);
    }

    public Options withPolicy(Policy other) {
        return new Options(handler, other, codec, a, b);
    }

    public Options withCodec(Codec other) {
        return new Options(handler, policy, other, a, b);
    }

    /** Keeps every {@code n}-th event. */
    public Options downsampled(int n) {
        return new Options(Handler.DOWNSAMPLE, policy, codec, n, 0);
    }

    /** Keeps events whose number modulo {@code y}, a power of two, is below {@code x}. */
    public Options xOfY(int x, int y) {
        return new Options(Handler.X_OF_Y, policy, codec, x, y);
    }

    /** Keeps of every {@code n} events, 65536 at most, the one in the middle by time. */
    public Options median(int n) {
        return new Options(Handler.MEDIAN, policy, codec, n, 0);
    }

    /** Counts, and writes the number so far with the first event after a period. */
    public Options counted(long periodNanos) {
        return counting(Handler.PERIODIC_COUNTER, periodNanos);
    }

    /** Counts; the collector writes the number so far once a period. */
    public Options countedFast(long periodNanos) {
        return counting(Handler.FAST_PERIODIC_COUNTER, periodNanos);
    }

    private Options counting(Handler other, long periodNanos) {
        return new Options(other, policy, codec, (int) periodNanos, (int) (periodNanos >>> 32));
    }

    /** {@code struct tare_log_options} of tare_log.h. */
    byte[] bytes() {
        return ByteBuffer.allocate(12)
                .order(ByteOrder.LITTLE_ENDIAN)
                .put((byte) handler.number)
                .put((byte) (policy.ordinal() + 1))
                .put((byte) codec.ordinal())
                .put((byte) 0)
                .putInt(a)
                .putInt(b)
                .array();
    }
}
