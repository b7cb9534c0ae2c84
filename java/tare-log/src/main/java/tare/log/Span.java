// SPDX-License-Identifier: Apache-2.0
package tare.log;

/**
 * What begins and ends: two channels, NAME&gt; and NAME&lt;.
 *
 * <pre>{@code
 * private static final Span WORK = TareLog.span("work");
 *
 * try (Span inside = WORK.enter(number)) {
 *     ...
 * }
 * }</pre>
 *
 * One object serves every thread, and spans inside of themselves.
 */
public final class Span implements AutoCloseable {
    private final Channel begin;
    private final Channel end;

    Span(Channel begin, Channel end) {
        this.begin = begin;
        this.end = end;
    }

    /** Begins one that ends when this is closed. */
    public Span enter() {
        return enter(0);
    }

    /** As above, with a number at its beginning. */
    public Span enter(long number) {
        begin.log(number);
        return this;
    }

    /** Begins one that {@link #end} ends. */
    public void begin(long number) {
        begin.log(number);
    }

    public void end(long number) {
        end.log(number);
    }

    @Override
    public void close() {
        end.log(0);
    }
}
