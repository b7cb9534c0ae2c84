# SPDX-License-Identifier: Apache-2.0
"""The section of the power curve: what more blocks would have shown."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import expm1, log, log1p

from tare.report.figures import power
from tare.report.figures.canvas import inline
from tare.report.figures.marks import SERIES
from tare.report.pictures import Picture, colours
from tare.report.result.result import Result
from tare.report.result.verdicts import Compared
from tare.report.sections import time_split
from tare.report.sections.sections import Figures, Section, Table
from tare.report.tables import whose
from tare.report.typesetting import count, percent, plural, safe
from tare.stats.fewest_runs import LEAST_PAIRED
from tare.stats.power import Design
from tare.terminal import both_ends

SHARE = 0.8
FARTHEST = 8
"""The curve ends at so many times the blocks that there are."""
POINTS = 50
LINES = 8
COLUMNS = (
    "condition",
    "blocks",
    "scatter of a difference",
    "upper bound",
    "threshold",
    "chance to find it",
    f"found in {SHARE * 100:.0f} %",
    "needed",
)


@dataclass(frozen=True)
class Scatter:
    """Of the differences of logs of the primary metric between a condition and the baseline."""

    blocks: int
    deviation: float
    upper: float
    """Upper 80 % bound: few blocks often look calmer than they are."""


def section(result: Result) -> Section:
    """The chance to find the threshold and the least effect found, by number of blocks."""
    known = [
        (comparison, found)
        for comparison in sorted(result.primary_comparisons, key=result.rank)
        if (found := scatter(result, comparison)) is not None
    ]
    return Section(
        anchor="power",
        name="More blocks",
        gist="what more blocks would detect",
        how="The vertical line is this experiment. Follow a curve to the right to see what more"
        " blocks would detect, if their differences scatter as these do. The last table has the"
        " best number and length of blocks for the same total time.",
        figures=[
            Figures(
                list(_pictures(result, known)),
                "First panel: the chance to find a difference as large as the threshold. Second"
                f" panel: the least difference that is found in {SHARE * 100:.0f} % of experiments."
                " The bands end at the upper 80 % bound of the scatter.",
            )
        ],
        tables=[
            Table("Power of this experiment", COLUMNS, list(_rows(result, known))),
            Table("Best split of the same time", time_split.COLUMNS, time_split.rows(result)),
        ],
        absent="no condition has two blocks with differences that scatter",
    )


def scatter(result: Result, comparison: Compared) -> Scatter | None:
    """None with fewer than two blocks, and where they do not differ at all."""
    from tare.stats.power import spread_of_differences, upper_spread

    place = comparison.environment, comparison.span
    sides: dict[str, dict[int, float]] = {}
    for run in result.experiment.runs:
        value = run.summaries.get(result.primary, 0.0)
        if (run.environment, run.span) == place and run.valid and value > 0:
            sides.setdefault(run.condition, {})[run.block] = log(value)
    base, mine = (sides.get(name, {}) for name in (result.baseline, comparison.condition))
    found = spread_of_differences([mine[block] - base[block] for block in mine if block in base])
    if found is None or not found[0] > 0:
        return None
    return Scatter(found[1] + 1, found[0], upper_spread(*found))


Known = Sequence[tuple[Compared, Scatter]]


def _pictures(result: Result, known: Known) -> Iterator[Picture]:
    colour = colours(result)
    for environment in result.environments:
        mine = [
            (comparison, found)
            for comparison, found in known
            if (comparison.environment, comparison.span) == (environment, result.span)
        ]
        if not mine:
            continue
        blocks = _blocks(mine)
        lines = [
            power.Line(
                comparison.condition,
                colour.get(comparison.condition, SERIES[1]),
                _curve(result, comparison, found, found.deviation, blocks),
                _curve(result, comparison, found, found.upper, blocks),
            )
            for comparison, found in mine[:LINES]
        ]
        said = "; ".join(
            f"{safe(comparison.condition)} has a chance of"
            f" {percent(line.likely.chance[-1], signed=False)} to find"
            f" {percent(result.threshold(comparison), signed=False)} in"
            f" {plural(blocks[-1], 'block')}, and"
            f" finds {percent(line.likely.least[-1], signed=False)}"
            for (comparison, _), line in zip(mine, lines, strict=False)
        )
        now = max(found.blocks for _, found in mine)
        more = len(mine) - len(lines)
        yield Picture(
            environment,
            inline(partial(power.draw, lines=lines, blocks=blocks, now=now, share=SHARE), said),
            [
                (both_ends(comparison.condition, 40), line.colour)
                for (comparison, _), line in zip(mine, lines, strict=False)
            ],
            f"Not drawn: {plural(more, 'more condition')}." if more > 0 else "",
        )


def _blocks(known: Known) -> list[int]:
    """From the fewest that give a verdict on, so far that the curves have risen."""
    import numpy as np

    most = max(found.blocks for _, found in known)
    needed = max(comparison.runs_needed or 0 for comparison, _ in known)
    last = max(min(max(3 * most, needed * 5 // 4), FARTHEST * most), 2 * LEAST_PAIRED)
    points = np.linspace(LEAST_PAIRED, last, min(POINTS, last - LEAST_PAIRED + 1))
    return sorted({int(point) for point in points})


def _curve(
    result: Result, comparison: Compared, found: Scatter, spread: float, blocks: Sequence[int]
) -> power.Curve:
    difference = log1p(result.threshold(comparison))
    design = Design(spread, found.blocks - 1, True, result.experiment.alpha, difference)
    least = (design.detectable(number, SHARE) for number in blocks)
    return power.Curve(
        [design.chance(difference, number) for number in blocks],
        [expm1(effect) for effect in least if effect is not None],
    )


def _rows(result: Result, known: Known) -> Iterator[Sequence[str]]:
    for comparison, found in known:
        now = _curve(result, comparison, found, found.deviation, [found.blocks])
        yield (
            whose(result, comparison),
            count(found.blocks),
            percent(expm1(found.deviation), signed=False),
            percent(expm1(found.upper), signed=False),
            percent(result.threshold(comparison), signed=False),
            percent(now.chance[0], signed=False),
            percent(now.least[0] if now.least else None, signed=False),
            count(comparison.runs_needed),
        )
