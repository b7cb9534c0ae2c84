# SPDX-License-Identifier: Apache-2.0
"""Every effect with its interval, against the budget: a forest plot."""

from collections.abc import Sequence
from dataclasses import dataclass

from tare.report.figures import scales
from tare.report.figures.canvas import Figure, Layout, Panel
from tare.report.figures.marks import BAND, Box, Dots, Line, Rule, Value
from tare.report.typesetting import interval, percent
from tare.terminal import both_ends


@dataclass(frozen=True)
class Effect:
    """One comparison, relative to the baseline; fractions, None where there is none."""

    condition: str
    span: str
    """Empty where there is one span only."""
    metric: str
    colour: str
    primary: bool
    value: float | None
    low: float | None
    high: float | None
    threshold: float
    """The smallest difference that matters and can be detected, as a fraction."""

    @property
    def name(self) -> str:
        return " ".join(filter(None, (self.condition, self.span, self.metric)))

    @property
    def numbers(self) -> str:
        """Effect and interval as text."""
        known = f", {interval(self.low, self.high)}" if self.low is not None else ""
        return f"{percent(self.value)}{known}"

    def label(self, limit: int) -> str:
        """The name, with the metric whole however long the others are."""
        names = [name for name in (self.condition, self.span) if name]
        room = limit - len(self.metric) - len(names)
        if sum(map(len, names)) > room:
            # What the span leaves free is the condition's.
            span = both_ends(self.span, room // 2)
            names = [both_ends(self.condition, room - len(span)), *([span] if span else [])]
        return " ".join((*names, self.metric))


def draw(layout: Layout, effects: Sequence[Effect]) -> Figure:
    """One row an effect; the band spans differences too small to matter."""
    ends = [
        end
        for effect in effects
        for end in (effect.value, effect.low, effect.high)
        if end is not None
    ]
    reach = 1.15 * max(effect.threshold for effect in effects)
    low, high = scales.extent([*ends, -reach, reach], 0.03)
    limit = 20 if layout.narrow else 44
    panel = Panel(
        x=scales.shares(low, high, 3 if layout.narrow else 7, signed=True),
        y=scales.names(
            [effect.label(limit) for effect in effects],
            strong=[effect.primary for effect in effects],
        ),
        x_title="difference from the baseline",
        grid="",
    )
    for row, effect in enumerate(effects):
        # A hair more than a row, so that no seam shows between two of them.
        panel.add(Box(-effect.threshold, effect.threshold, row - 0.51, row + 0.51, BAND))
    panel.add(Rule(x=0))
    for row, effect in enumerate(effects):
        strength, width = (1.0, 2.4) if effect.primary else (0.55, 1.4)
        if effect.low is not None and effect.high is not None:
            panel.add(Line([effect.low, effect.high], [row, row], effect.colour, width, strength))
        if effect.value is not None:
            radius = 4.5 if effect.primary else 3.2
            panel.add(Dots([effect.value], [row], effect.colour, radius, strength))
            panel.add(Value(effect.value, row, f"{both_ends(effect.name, 40)}: {effect.numbers}"))
    return Figure([panel], (28 if layout.narrow else 26) * len(effects) + 56)
