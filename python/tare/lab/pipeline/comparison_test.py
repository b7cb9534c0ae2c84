# SPDX-License-Identifier: Apache-2.0
"""Compared with dicts, span by span."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from tare.lab.pipeline.comparison import collected, compared, incomplete
from tare.samples.manifest import Collected

Span = tuple[str, str, int]


def table(spans: Sequence[Span]) -> pa.Table:
    columns = zip(*spans, strict=True) if spans else ((), (), ())
    names = (("trace_id", pa.string()), ("span_id", pa.string()), ("duration_ns", pa.int64()))
    return pa.table(
        {name: pa.array(values, kind) for (name, kind), values in zip(names, columns, strict=True)}
    )


def literally(received: Sequence[Span], stored: Sequence[Span]) -> Collected:
    own = {span[:2]: span[2] for span in reversed(received)}
    theirs = {span[:2]: span[2] for span in reversed(stored)}
    both = own.keys() & theirs.keys()
    return Collected(
        received=len(own),
        queued=len(stored),
        stored=len(theirs),
        missing=len(own.keys() - both),
        additional=len(theirs.keys() - both),
        different=sum(own[span] // 1_000 != theirs[span] // 1_000 for span in both),
    )


@pytest.mark.parametrize("seed", range(20))
def test_every_span_is_counted_once(seed: int) -> None:
    random = np.random.default_rng(seed)
    received = [
        (f"{at % 7:032x}", f"{at:016x}", int(random.integers(0, 5_000))) for at in range(200)
    ]
    stored = [
        (trace, span, (duration + (random.random() < 0.1) * 1_000) // 1_000 * 1_000)
        for trace, span, duration in received
        if random.random() < 0.9
    ]
    stored += [("f" * 32, f"{at:016x}", 0) for at in range(int(random.integers(0, 3)))]
    random.shuffle(stored)
    twice = [*received, *received[:5]]
    found = compared(table(twice), len(stored), table(stored))
    assert found == literally(twice, stored)


def test_durations_are_compared_in_whole_microseconds() -> None:
    received = [("a", "1", 1_999), ("a", "2", 0), ("b", "1", 2_000)]
    stored = [("a", "1", 1_000), ("a", "2", 0), ("b", "1", 1_000)]
    assert compared(table(received), 3, table(stored)).different == 1


def test_nothing_stored_is_all_missing() -> None:
    found = compared(table([("a", "1", 5), ("a", "2", 5)]), 0, table([]))
    assert (found.missing, found.stored, found.is_whole) == (2, 0, False)


def test_all_equal_is_no_warning() -> None:
    spans = table([("a", "1", 5_000)])
    found = compared(spans, 1, spans)
    assert incomplete("jaeger", found) is None
    assert collected("traced", found) == (
        "spans of traced: 1 received, 1 in Kafka, 1 stored; all durations are equal"
    )


def test_a_warning_names_where_spans_were_lost() -> None:
    found = Collected(received=1_200, queued=1_195, stored=1_190, missing=10, different=2)
    assert incomplete("jaeger", found) == (
        "jaeger: incomplete: Elasticsearch lacks 10 of 1,200 spans that Tare received (5 before"
        " Kafka: enlarge queue of [collect]; 5 between Kafka and Elasticsearch); 2 spans have"
        " another duration"
    )
    assert collected("traced", found).endswith("1,190 stored; incomplete")
