// SPDX-License-Identifier: Apache-2.0
package tare.log.agent;

import java.util.ArrayList;
import java.util.List;

/**
 * What stands behind {@code -javaagent:tare-log-agent.jar=}.
 *
 * @param filter which methods are logged
 * @param limit calls in a second above which a method is logged no more; 0 for none
 */
record Arguments(Filter filter, long limit) {
    private static final String USAGE =
            "expected include=PATTERN[,include=PATTERN...][,exclude=PATTERN...][,limit=CALLS],"
                    + " with patterns as in com.acme.*, com.acme.Service+ or *#get*";

    /** IllegalArgumentException, with a line for the user, where there is something else. */
    static Arguments parse(String text) {
        List<Pattern> include = new ArrayList<>();
        List<Pattern> exclude = new ArrayList<>();
        long limit = 0;
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
                default -> throw new IllegalArgumentException("\"" + part + "\": " + USAGE);
            }
        }
        if (include.isEmpty()) {
            throw new IllegalArgumentException("no include=: " + USAGE);
        }
        return new Arguments(new Filter(include, exclude), limit);
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
        throw new IllegalArgumentException("limit=" + value + ": expected calls in a second");
    }
}
