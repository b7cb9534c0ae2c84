# SPDX-License-Identifier: Apache-2.0
"""Latency at each percentile, the tail spread out: each further nine takes the same width."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tare.report.distributions import Curve, middle
from tare.report.figures import scales
from tare.report.figures.canvas import Layout

if TYPE_CHECKING:
    from matplotlib.figure import Figure

THIN_LINES = 12
"""So many runs of a condition are drawn one by one."""


@dataclass(frozen=True)
class Line:
    """One condition: its runs' curves and its colour."""

    colour: str
    runs: Sequence[Curve]

    def drawn(self) -> list[Curve]:
        """At most THIN_LINES runs, evenly spread over the experiment."""
        step = -(-len(self.runs) // THIN_LINES)
        return list(self.runs[::step])


def draw(layout: Layout, lines: Sequence[Line]) -> "Figure":
    """A thin line a run, a bold one for the median over the runs of a condition."""
    figure, (axes,) = layout.figure(300 if layout.narrow else 400)
    bold = [middle(line.runs) for line in lines]
    for line in lines:
        for curve in line.drawn():
            axes.plot(curve.tail, curve.latency_ns, color=line.colour, linewidth=0.6, alpha=0.35)
    for line, curve in zip(lines, bold, strict=True):
        axes.plot(curve.tail, curve.latency_ns, color=line.colour, linewidth=1.8)
    every = [curve for line in lines for curve in line.drawn()]
    scales.log_time(
        axes,
        "y",
        min(curve.latency_ns[0] for curve in every),
        max(curve.latency_ns[-1] for curve in every),
    )
    longest = max(curve.tail[-1] for curve in every)
    scales.tail(axes.xaxis, longest, with_median=not layout.narrow)
    axes.set_xlim(0, longest or 1)  # one request has no tail
    axes.set_xlabel("percentile of requests")
    return figure
