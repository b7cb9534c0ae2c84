# SPDX-License-Identifier: Apache-2.0
"""Every effect with its interval, against the budget: a forest plot."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tare.report.figures import scales
from tare.report.figures.canvas import BAND, INK, SOFT, Layout
from tare.report.words import both_ends

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Effect:
    """One comparison, relative to the baseline; fractions, None where there is none."""

    condition: str
    span: str
    """Empty where there is one only."""
    metric: str
    colour: str
    primary: bool
    value: float | None
    low: float | None
    high: float | None
    threshold: float
    """The smallest difference that matters and can be told, as a fraction."""

    @property
    def name(self) -> str:
        return " ".join(filter(None, (self.condition, self.span, self.metric)))

    def label(self, limit: int) -> str:
        """The name, with the metric whole however long the others are."""
        names = [name for name in (self.condition, self.span) if name]
        room = limit - len(self.metric) - len(names)
        if sum(map(len, names)) > room:
            # What the span leaves free is the condition's.
            span = both_ends(self.span, room // 2)
            names = [both_ends(self.condition, room - len(span)), *([span] if span else [])]
        return " ".join((*names, self.metric))


def draw(layout: Layout, effects: Sequence[Effect]) -> "Figure":
    """One row an effect; the band spans differences too small to matter."""
    import numpy as np

    figure, (axes,) = layout.figure((30 if layout.narrow else 28) * len(effects) + 60)
    bands = np.array([effect.threshold for effect in effects])
    # A line of the same colour covers the seams between rows.
    places = range(len(effects))
    axes.barh(places, 2 * bands, 1, -bands, color=BAND, edgecolor=BAND, linewidth=0.5, zorder=0)
    axes.axvline(0, color=SOFT, linewidth=0.9, zorder=1)
    for row, effect in enumerate(effects):
        strength = 1.0 if effect.primary else 0.55
        width = 2.4 if effect.primary else 1.4
        if effect.low is not None and effect.high is not None:
            axes.hlines(
                row, effect.low, effect.high, color=effect.colour, linewidth=width, alpha=strength
            )
        if effect.value is not None:
            size = 46 if effect.primary else 22
            axes.scatter(
                effect.value,
                row,
                s=size,
                color=effect.colour,
                alpha=strength,
                linewidth=0,
                zorder=3,
            )
    limit = 20 if layout.narrow else 44
    axes.set_yticks(range(len(effects)), [effect.label(limit) for effect in effects])
    for label, effect in zip(axes.get_yticklabels(), effects, strict=True):
        label.set_color(INK if effect.primary else SOFT)
    axes.set_ylim(len(effects) - 0.4, -0.6)
    axes.grid(axis="y", visible=False)
    scales.shares(axes.xaxis, 4 if layout.narrow else 7, signed=True)
    low, high = axes.get_xlim()
    reach = 1.15 * bands.max()
    axes.set_xlim(min(low, -reach), max(high, reach))
    axes.set_xlabel("difference from the baseline")
    return figure
