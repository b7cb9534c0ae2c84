// SPDX-License-Identifier: Apache-2.0
package cp.swig;

import java.net.Inet4Address;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import tare.log.Options;
import tare.log.Probe;
import tare.log.TareLog;

/**
 * Cloudprofiler's calls for Java: a program that uses its jar runs with this one in its place.
 * As with tare_log_compat.h, {@code tare log run} collects the events, and {@code tare log export
 * --to cloudprofiler} makes the files that Cloudprofiler would have written, one a channel.
 */
public class cloud_profiler {
    private static final class Opened {
        final String name;
        final handler_type handler;
        final int channel;
        Options options;
        boolean isOpen = true;

        Opened(String name, handler_type handler, Options options) {
            this.name = name;
            this.handler = handler;
            this.options = options;
            // What a rule says from outside holds where the program leaves it open.
            channel = Probe.open(name, handler == handler_type.NET_CONF ? null : options);
        }
    }

    private static final String LETTERS = "aibyzdlx";
    private static final Options WAITING = Options.DEFAULT.withPolicy(Options.Policy.WAIT);

    /** What was opened so far; and the names that were asked for. */
    private static final List<Opened> ALL = new ArrayList<>();

    private static final List<String> NAMES = new ArrayList<>();

    /** Of no use, as Cloudprofiler's is. */
    public cloud_profiler() {}

    /**
     * A channel of its own: a name that was there before gets a number behind it. The channel's
     * number here stands in the upper half of the result, the one that logs in the lower.
     */
    public static synchronized long openChannel(String name, log_format format, handler_type handler) {
        long times = 1 + NAMES.stream().filter(name::equals).count();
        String unique = times == 1 ? name : name + " (" + times + ")";
        Opened opened = new Opened(unique, handler, options(format, handler));
        int number = ALL.size();
        NAMES.add(name);
        ALL.add(opened);
        // For the export: the channel's number here and there, format, handler, address, name.
        String told =
                String.join(
                        " ",
                        String.valueOf(opened.channel >>> 2),
                        String.valueOf(number),
                        LETTERS.substring(format.ordinal(), format.ordinal() + 1),
                        String.valueOf(handler.ordinal()),
                        address(),
                        name);
        TareLog.open("cloudprofiler", WAITING).log(told.getBytes(StandardCharsets.UTF_8));
        return (number + 1L) << 32 | opened.channel;
    }

    /** Logs {@code tuple} now; -1 closes the channel. */
    public static void logTS(long channel, long tuple) {
        if (tuple == -1) {
            closeChannel(channel);
        } else {
            Probe.log((int) channel, tuple);
        }
    }

    /** A call that does nothing, to weigh calls with. */
    public static void nologTS(long channel, long tuple) {}

    public static synchronized boolean isOpen(long channel) {
        Opened known = find(channel);
        return known != null && known.isOpen;
    }

    public static synchronized void closeChannel(long channel) {
        Opened known = find(channel);
        if (known != null) {
            known.isOpen = false;
            Probe.close(known.channel);
        }
    }

    /** -1 where the handler has no such parameter, or not with this value: the channel is closed then. */
    public static synchronized int parameterizeChannel(long channel, int argument, long value) {
        Opened known = find(channel);
        if (known == null || !known.isOpen) {
            return -1;
        }
        Options options = parameterized(known, argument, value);
        if (options == null) {
            closeChannel(channel);
            return -1;
        }
        known.options = options;
        Probe.open(known.name, options);
        return 0;
    }

    /** {@code 10KiB} is 10240, {@code 1MB} a million. */
    public static int parameterizeChannel(long channel, int argument, String value) {
        return parameterizeChannel(channel, argument, size(value));
    }

    private static Opened find(long channel) {
        long place = channel >>> 32;
        return place == 0 || place > ALL.size() ? null : ALL.get((int) place - 1);
    }

    /** What Cloudprofiler does with events, as tare log calls it: it waits where there is no room. */
    private static Options options(log_format format, handler_type handler) {
        Options.Codec codec =
                switch (format) {
                    case ZSTD, ZSTD_TSC -> Options.Codec.ZSTD;
                    case LZO1X, LZO1X_TSC -> Options.Codec.LZO1X;
                    default -> Options.Codec.ANY;
                };
        Options options = WAITING.withCodec(codec);
        return switch (handler) {
            case IDENTITY -> options.withHandler(Options.Handler.ID);
            case NULLH -> options.withHandler(Options.Handler.NULL);
            case DOWNSAMPLE -> options.downsampled(10);
            case XOY -> options.xOfY(100, 16384);
            case FIRSTLAST -> options.withHandler(Options.Handler.FIRST_LAST);
            case MEDIAN -> options.median(1000);
            case PERIODICCOUNTER -> options.counted(10_000_000);
            case FASTPERIODICCOUNTER -> options.countedFast(10_000_000);
            default -> options;
        };
    }

    /** Null where that cannot be. */
    private static Options parameterized(Opened channel, int argument, long value) {
        Options options = channel.options;
        if (channel.handler == handler_type.PERIODICCOUNTER && argument == 0 && value >= 1) {
            return options.counted(value);
        }
        if (channel.handler == handler_type.FASTPERIODICCOUNTER && argument == 0 && value >= 1) {
            return options.countedFast(value);
        }
        if (value < 0 || value > 0xffff_ffffL) {
            return null;
        }
        int number = (int) value;
        if (channel.handler == handler_type.DOWNSAMPLE && argument == 0 && value >= 1) {
            return options.downsampled(number);
        }
        if (channel.handler == handler_type.MEDIAN && argument == 0 && value >= 1) {
            return options.median(number);
        }
        if (channel.handler == handler_type.XOY && argument == 0) {
            return options.xOfY(number, options.b());
        }
        boolean isY = channel.handler == handler_type.XOY && argument == 1;
        boolean isLarge = value >= Integer.toUnsignedLong(options.a());
        return isY && Long.bitCount(value) == 1 && isLarge ? options.xOfY(options.a(), number) : null;
    }

    /** -1 for what is no size. */
    private static long size(String text) {
        int end = 0;
        while (end < text.length() && end < 18 && text.charAt(end) >= '0' && text.charAt(end) <= '9') {
            end++;
        }
        if (end == 0) {
            return -1;
        }
        String unit = text.substring(end);
        if (unit.endsWith("B")) {
            unit = unit.substring(0, unit.length() - 1);
        }
        boolean isBinary = unit.length() == 2 && unit.charAt(1) == 'i';
        int power = unit.isEmpty() ? 0 : "KMGT".indexOf(unit.charAt(0)) + 1;
        if (unit.length() > 1 && !isBinary || !unit.isEmpty() && power == 0) {
            return -1;
        }
        try {
            long size = Long.parseLong(text.substring(0, end));
            for (int times = 0; times < power; times++) {
                size = Math.multiplyExact(size, isBinary ? 1024 : 1000);
            }
            return size;
        } catch (ArithmeticException e) {
            return -1;
        }
    }

    /** The first address of this host that is not its loopback's. */
    private static String address() {
        try {
            for (NetworkInterface network : Collections.list(NetworkInterface.getNetworkInterfaces())) {
                for (InetAddress address : Collections.list(network.getInetAddresses())) {
                    if (address instanceof Inet4Address && !address.isLoopbackAddress()) {
                        return address.getHostAddress();
                    }
                }
            }
        } catch (SocketException e) {
            // as where there is none
        }
        return "127.0.0.1";
    }
}
