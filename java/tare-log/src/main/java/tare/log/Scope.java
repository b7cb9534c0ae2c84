// SPDX-License-Identifier: Apache-2.0
package tare.log;

/**
 * Logs when something begins and ends, on two channels, NAME&gt; and NAME&lt;:
 *
 * <pre>{@code
 * private static final Scope PARSE = TareLog.scope("parse");
 *
 * try (Scope here = PARSE.begin()) {
 *     ...
 * }
 * }</pre>
 *
 * One object serves every thread, and scopes inside of themselves.
 */
public final class Scope implements AutoCloseable {
    private final Channel begin;
    private final Channel end;

    Scope(Channel begin, Channel end) {
        this.begin = begin;
        this.end = end;
    }

    /** It begins, with nothing to say. */
    public Scope begin() {
        return begin(0);
    }

    /** It begins. */
    public Scope begin(long payload) {
        begin.log(payload);
        return this;
    }

    /** It ends. */
    public void end(long payload) {
        end.log(payload);
    }

    /** It ends, with nothing to say. */
    @Override
    public void close() {
        end.log(0);
    }
}
