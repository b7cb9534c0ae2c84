# SPDX-License-Identifier: Apache-2.0
"""Services that have different clocks, and the critical path of their requests."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from tare.samples.describe.defects import Mended, mended
from tare.samples.describe.span_arrays import span_arrays
from tare.samples.sql.engine import connect
from tare.samples.sql.table import fresh_name
from tare.stats.forest import critical_times

MS = 1_000_000
REQUESTS = 60


class Span(NamedTuple):
    """`up` is the place of its parent in the request; times in ms by one clock for all."""

    service: str
    kind: str
    up: int | None
    begin: float
    took: float


Request = Callable[[np.random.Generator], list[Span]]


def by(ms: float) -> Callable[[int], float]:
    return lambda _: ms


def call(generator: np.random.Generator) -> list[Span]:
    """A shop calls a bank, and the bank calls users."""
    there, back, work = generator.uniform((0.1, 0.1, 3), (0.3, 0.3, 4))
    return [
        Span("shop", "server", None, 0, 8),
        Span("shop", "client", 0, 1, there + work + back),
        Span("bank", "server", 1, 1 + there, work),
        Span("bank", "client", 2, 2 + there, 1),
        Span("users", "server", 3, 2.2 + there, 0.6),
    ]


def found(
    request: Request,
    late: Mapping[str, Callable[[int], float]] | None = None,
    host: Callable[[str, int], str | None] = lambda *_: None,
    requests: int = REQUESTS,
) -> Mended:
    """The traces of requests; `late` has the ms that a service's clock adds at the nth request."""
    generator = np.random.default_rng(1)
    rows = [
        {
            "trace_id": f"{number}", "span_id": f"{place}", "ok": True, "place": number,
            "parent_id": None if span.up is None else f"{span.up}",
            "span": f"{span.service}: work ({span.kind})", "service": span.service,
            "host": host(span.service, number),
            "start_ns": round(
                (100 * number + span.begin + (late or {}).get(span.service, by(0))(number))
                * MS
            ),
            "duration_ns": round(span.took * MS),
        }
        for number in range(requests)
        for place, span in enumerate(request(generator))
    ]  # fmt: skip
    schema = {"host": pa.string(), "parent_id": pa.string()}
    table = pa.table(
        {name: pa.array([row[name] for row in rows], schema.get(name)) for name in rows[0]}
    )
    spans = span_arrays(connect().create_table(fresh_name("spans"), table))
    assert spans is not None
    return mended(spans)


def times(traces: Mended) -> list[int]:
    """The time in ns of each span on the critical path."""
    found: list[int] = critical_times(traces.spans.forest.within_parents()).tolist()
    return found


EQUAL = found(call)


def test_clocks_that_agree_change_nothing() -> None:
    assert EQUAL.lines == ()
    assert not EQUAL.unclear.any()
    begins = sorted(EQUAL.spans.forest.begin.tolist())
    assert begins == sorted(found(call, host=lambda *_: "one").spans.forest.begin.tolist())


@pytest.mark.parametrize("ms", [-5, -1, -0.4, 0.5, 1, 5, 300])
def test_a_clock_that_differs_does_not_move_the_critical_path(ms: float) -> None:
    apart = found(call, {"bank": by(ms)})
    assert times(apart) == times(EQUAL)
    assert not apart.unclear.any()
    word = "ahead of" if ms > 0 else "behind"
    assert any(f"{word} the clock of 'shop' (calls: {REQUESTS})" in line for line in apart.lines)


def test_three_services_have_three_clocks() -> None:
    apart = found(call, {"bank": by(5), "users": by(-4)})
    assert times(apart) == times(EQUAL)
    assert len(apart.lines) == 2


def test_a_small_difference_that_leaves_spans_inside_of_their_calls_changes_nothing() -> None:
    assert found(call, {"bank": by(0.05)}).lines == ()


def test_programs_of_one_host_have_one_clock() -> None:
    apart = found(call, {"bank": by(5)}, host=lambda *_: "one")
    assert times(apart) != times(EQUAL)
    assert all("clock of 'bank'" not in line for line in apart.lines)


def test_each_host_of_a_service_has_its_own_clock() -> None:
    apart = found(
        call,
        {"bank": lambda number: (-3, 2, 6)[number % 3]},
        lambda service, number: f"{number % 3}" if service == "bank" else service,
    )
    assert times(apart) == times(EQUAL)
    assert "the clock of 'bank' is -3.01 to 6.01 ms ahead" in apart.lines[0]


def test_a_clock_may_drift() -> None:
    apart = found(call, {"bank": lambda number: 2 + number / 1_000}, requests=1_000)
    wrong = np.subtract(times(apart), times(found(call, requests=1_000)))
    assert np.abs(wrong).max() < 0.05 * MS, "within a part, a few fast calls are cut"
    assert "the clock of 'bank' is 2.11 to 2.89 ms ahead" in apart.lines[0]


def test_if_each_request_has_another_offset_spans_are_centred() -> None:
    """So do replicas of a service on several hosts, if spans do not name the host."""
    apart = found(call, {"bank": lambda number: (-3, 2, 6)[number % 3]})
    assert times(apart) == times(EQUAL)
    assert "to the middle of its client span" in apart.lines[0]


def test_a_consumer_that_begins_after_its_producer_is_no_difference_of_clocks() -> None:
    def queued(generator: np.random.Generator) -> list[Span]:
        first = call(generator)
        return [
            *first,
            Span("shop", "producer", 0, 7, 0.1),
            Span("mail", "consumer", len(first), generator.uniform(8, 20), 2),
        ]

    assert found(queued).lines == ()


def test_a_call_that_is_not_waited_for_is_no_difference_of_clocks() -> None:
    def started(generator: np.random.Generator) -> list[Span]:
        return [
            Span("shop", "server", None, 0, 3),
            Span("shop", "client", 0, 1, 0.2),
            Span("bank", "server", 1, 1.1, generator.uniform(1, 5)),
        ]

    assert found(started).lines == ()


def test_some_callers_that_gave_up_do_not_move_the_others() -> None:
    def limited(generator: np.random.Generator) -> list[Span]:
        gave_up = generator.random() < 0.03
        return [
            Span("shop", "server", None, 0, 8),
            Span("shop", "client", 0, 1, 4),
            Span("bank", "server", 1, 3 if gave_up else 1.2, 3.5),
        ]

    assert found(limited, requests=500).lines == ()


def test_calls_that_end_late_by_different_times_are_reported_and_not_moved() -> None:
    def streamed(generator: np.random.Generator) -> list[Span]:
        return [
            Span("shop", "server", None, 0, 8),
            Span("shop", "client", 0, 1, 4),
            Span("bank", "server", 1, 1.1 + generator.choice([0, 2]), 3.5),
        ]

    traces = found(streamed)
    assert not traces.unclear.any()
    (line,) = traces.lines
    assert "end after the span of 'shop' that calls them, by up to 1.6 ms" in line


@pytest.mark.parametrize("kind", ["client", "internal"])
def test_where_nothing_shows_the_difference_there_is_no_path(kind: str) -> None:
    """The call is shorter than its server's span, or has no span of a client."""

    def short(_: np.random.Generator) -> list[Span]:
        took = 0.2 if kind == "client" else 6
        return [
            Span("shop", "server", None, 0, 8),
            Span("shop", kind, 0, 1, took),
            Span("bank", "server", 1, 1.1, 5),
        ]

    assert found(short).lines == ()
    traces = found(short, {"bank": by(-3)})
    assert traces.unclear[traces.spans.trace].all()
    (line,) = traces.lines
    assert "60 of 60 server spans of 'bank' begin before the span of 'shop'" in line
    assert line.endswith("left out of the critical path")


def test_calls_that_are_waited_for_show_that_others_are_not() -> None:
    def both(_: np.random.Generator) -> list[Span]:
        return [
            Span("shop", "server", None, 0, 8),
            Span("shop", "client", 0, 1, 3),
            Span("bank", "server", 1, 1.2, 2.5),
            Span("bank", "server", 0, 6, 5),
        ]

    assert found(both).lines == ()


def test_few_calls_that_end_late_show_no_offset() -> None:
    traces = found(call, {"bank": by(3)}, requests=3)
    assert "end after the span of 'shop'" in traces.lines[0]
    assert "ms behind the clock" in found(call, {"bank": by(-3)}, requests=1).lines[0]


def test_spans_without_kinds_that_begin_early_are_reported() -> None:
    def plain(_: np.random.Generator) -> list[Span]:
        return [Span("shop", "", None, 0, 8), Span("bank", "", 0, 1, 2)]

    (line,) = found(plain, {"bank": by(-2)}).lines
    assert line.startswith("60 of 60 'bank: work ()' begin before their parent span, by up to 1 ms")
