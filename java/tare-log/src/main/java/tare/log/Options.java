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
        NULL,
        /** It is kept. */
        BUFFERED,
        /** Every {@code a}-th of all threads together is kept. */
        DOWNSAMPLE,
        /** It is kept if its number modulo {@code b}, a power of two, is below {@code a}. */
        X_OF_Y
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

    /** {@code struct tare_log_options} of tare_log.h. */
    byte[] bytes() {
        return ByteBuffer.allocate(12)
                .order(ByteOrder.LITTLE_ENDIAN)
                .put((byte) (handler.ordinal() + 1))
                .put((byte) (policy.ordinal() + 1))
                .put((byte) codec.ordinal())
                .put((byte) 0)
                .putInt(a)
                .putInt(b)
                .array();
    }
}
