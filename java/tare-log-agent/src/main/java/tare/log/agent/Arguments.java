// SPDX-License-Identifier: Apache-2.0
package tare.log.agent;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import tare.log.Options;

/**
 * What stands behind {@code -javaagent:tare-log-agent.jar=}.
 *
 * @param filter which methods are logged
 * @param limit calls in a second above which a method is logged no more; 0 for none
 * @param options of the channels of methods
 */
record Arguments(Filter filter, long limit, Options options) {
    private static final String USAGE =
            "expected include=PATTERN[,include=PATTERN...][,exclude=PATTERN...][,limit=CALLS]"
                    + "[,policy=POLICY][,codec=CODEC], with a PATTERN such as com.acme.*, com.acme.Service+ or *#get*";

    /** IllegalArgumentException, with a line for the user, where there is something else. */
    static Arguments parse(String text) {
        List<Pattern> include = new ArrayList<>();
        List<Pattern> exclude = new ArrayList<>();
        long limit = 0;
        Options options = Options.DEFAULT;
        for (String part : (text == null ? "" : text).split(",")) {
            int equals = part.indexOf('=');
            String value = part.substring(equals + 1).strip();
            if (equals < 0 || value.isEmpty()) {
                throw new IllegalArgumentException("\"" + part + "\": " + USAGE);
            }
            switch (part.substring(0, equals).strip()) {
                case "include" -> include.add(Pattern.of(value));
                case "exclude" -> exclude.add(Pattern.of(value));
                case "limit" -> limit = calls(value);
                case "policy" -> options = options.withPolicy(named(Options.Policy.class, part));
                case "codec" -> options = options.withCodec(named(Options.Codec.class, part));
                default -> throw new IllegalArgumentException("\"" + part + "\": " + USAGE);
            }
        }
        if (include.isEmpty()) {
            throw new IllegalArgumentException("no include=: " + USAGE);
        }
        return new Arguments(new Filter(include, exclude), limit, options);
    }

    private static long calls(String value) {
        try {
            long calls = Long.parseLong(value);
            if (calls > 0) {
                return calls;
            }
        } catch (NumberFormatException e) {
            // as what follows
        }
        throw new IllegalArgumentException("limit=" + value + ": expected a number of calls/s");
    }

    /** What {@code KEY=NAME} names. */
    private static <T extends Enum<T>> T named(Class<T> type, String part) {
        String name = part.substring(part.indexOf('=') + 1).strip();
        return Stream.of(type.getEnumConstants())
                .filter(constant -> name(constant).equals(name))
                .findFirst()
                .orElseThrow(() -> new IllegalArgumentException(part + ": expected " + names(type)));
    }

    private static <T extends Enum<T>> String names(Class<T> type) {
        return Stream.of(type.getEnumConstants())
                .map(Arguments::name)
                .collect(Collectors.joining(", "));
    }

    private static String name(Enum<?> constant) {
        return constant.name().toLowerCase(Locale.ROOT);
    }
}
