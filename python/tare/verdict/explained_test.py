# SPDX-License-Identifier: Apache-2.0
"""The sentence that says which spans a change is in."""

import pytest

from tare.verdict.explained import explained
from tare.verdict.traces import Change, SpanPart

MS = 1e6


def change(before: float, difference: float, shown: bool = True, known: bool = True) -> Change:
    """In ms; with a narrow interval if it is shown, and none if it is not known."""
    width = 0.1 * abs(difference) if shown else 2 * abs(difference) + 1
    means = before * MS, (before + difference) * MS, difference * MS
    if not known:
        return Change(*means)
    low, high = (difference - width) * MS, (difference + width) * MS
    return Change(*means, low, high, 0.01 if shown else 0.5)


def sentence(whole: Change, **parts: Change) -> str:
    none = change(1, 0)
    spans = [SpanPart(name, its, none, none) for name, its in parts.items()]
    ordered = sorted(spans, key=lambda part: -abs(part.critical_ns.difference))
    return explained(whole, ordered)


@pytest.mark.parametrize(
    ("whole", "parts", "text"),
    [
        (
            change(10, 2),
            {"pay": change(4, 1.9), "cache": change(1, 0.1)},
            "requests take 2.00 ms longer, explained by 'pay' (+1.90 ms)",
        ),
        (
            change(10, -1),
            {"pay": change(4, -2), "cache": change(1, 0.9), "a": change(1, 0.1)},
            "requests take 1.00 ms less, explained by 'pay' (-2.00 ms) and 'cache' (+900 µs)",
        ),
        (
            change(10, 1),
            {"pay": change(4, 2, shown=False), "cache": change(1, -1, shown=False)},
            "requests take 1.00 ms longer, in many spans",
        ),
        (
            change(10, 0.1, shown=False),
            {"pay": change(4, 1), "cache": change(1, -0.9), "a": change(1, 0.001)},
            "requests show no change of their mean time, but 'pay' (+1.00 ms) and 'cache'"
            " (-900 µs)",
        ),
        (change(10, 0), {"pay": change(4, 0)}, "requests show no change of their mean time"),
        (
            change(10, 1, known=False),
            {"pay": change(4, 1, known=False)},
            "requests take 1.00 ms longer, explained by 'pay' (+1.00 ms); too few runs to prove it",
        ),
    ],
)
def test_the_spans_of_a_change_are_named(
    whole: Change, parts: dict[str, Change], text: str
) -> None:
    assert sentence(whole, **parts) == text
