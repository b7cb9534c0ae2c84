# SPDX-License-Identifier: Apache-2.0
"""Latency at each percentile, the tail spread out: each further nine takes the same width."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tare.report.figures import marks, scales
from tare.report.figures.canvas import Figure, Layout, Panel
from tare.report.result.distributions import Curve, middle
from tare.report.typesetting import duration
from tare.terminal import both_ends

THIN_LINES = 12
"""The number of runs of a condition that are drawn as lines of their own."""
NAMED = {0.5: "p50", 0.9: "p90", 0.99: "p99", 0.999: "p99.9"}
"""Percentiles whose values show."""


@dataclass(frozen=True)
class Line:
    """One condition: its runs' curves and its colour."""

    name: str
    colour: str
    runs: Sequence[Curve]

    def drawn(self) -> list[Curve]:
        """At most THIN_LINES runs, evenly spread over the experiment."""
        step = -(-len(self.runs) // THIN_LINES)
        return list(self.runs[::step])


def draw(layout: Layout, lines: Sequence[Line]) -> Figure:
    """A thin line a run, a bold line for the median over the runs of a condition."""
    every = [curve for line in lines for curve in line.drawn()]
    panel = Panel(
        x=scales.tail(max(curve.tail[-1] for curve in every), with_median=not layout.narrow),
        y=scales.log_times(
            min(curve.latency_ns[0] for curve in every),
            max(curve.latency_ns[-1] for curve in every),
        ),
        x_title="percentile of requests",
    )
    for line in lines:
        for curve in line.drawn():
            panel.add(_line(curve, line.colour, 0.6, 0.35))
    bold = [(line, middle(line.runs)) for line in lines]
    for line, curve in bold:
        panel.add(_line(curve, line.colour, 1.8))
    for line, curve in bold:
        for name, tail, value in values(curve):
            text = f"{both_ends(line.name, 24)}: {name} {duration(value)}"
            panel.add(marks.Value(tail, value, text))
    return Figure([panel], 300 if layout.narrow else 400)


def _line(curve: Curve, colour: str, width: float, opacity: float = 1.0) -> marks.Line:
    return marks.Line(curve.tail.tolist(), curve.latency_ns.tolist(), colour, width, opacity)


def values(curve: Curve) -> list[tuple[str, float, float]]:
    """Name, place and value of each named percentile that the curve reaches."""
    import numpy as np

    found = []
    for share, name in NAMED.items():
        tail = -math.log10(1 - share)
        if tail <= curve.tail[-1] + 1e-9:
            found.append((name, tail, float(np.interp(tail, curve.tail, curve.latency_ns))))
    return found
