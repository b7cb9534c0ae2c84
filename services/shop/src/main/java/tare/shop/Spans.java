// SPDX-License-Identifier: Apache-2.0
package tare.shop;

import io.opentelemetry.api.GlobalOpenTelemetry;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.StatusCode;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.context.Scope;

/** Spans of steps that OpenTelemetry's Java agent does not know; without the agent they do nothing. */
final class Spans {
    private static final Tracer TRACER = GlobalOpenTelemetry.getTracer("tare.shop");

    private Spans() {}

    interface Step<E extends Exception> {
        void run() throws E;
    }

    static <E extends Exception> void span(String name, Step<E> step) throws E {
        Span span = TRACER.spanBuilder(name).startSpan();
        try (Scope scope = span.makeCurrent()) {
            step.run();
        } catch (Throwable failure) {
            span.recordException(failure).setStatus(StatusCode.ERROR);
            throw failure;
        } finally {
            span.end();
        }
    }
}
