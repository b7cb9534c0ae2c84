# SPDX-License-Identifier: Apache-2.0
"""The section of distances between runs: whether runs of one condition are alike at all."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from tare.report.figures import heat_map, ranges
from tare.report.figures.canvas import inline
from tare.report.figures.marks import SERIES
from tare.report.pictures import Picture, colours
from tare.report.result.result import Result
from tare.report.sections.sections import Figures, Section, Table
from tare.report.tables import whose
from tare.report.typesetting import count, plural, safe

if TYPE_CHECKING:
    from tare.samples.model import SpanKey
    from tare.stats.arrays import Array

PLACES = 6
"""Environments and spans that are drawn, whole requests first."""
NAMES = {"ks": "Kolmogorov–Smirnov", "ad": "Anderson–Darling"}
TOLD = NAMES | {"cvm": "Cramér–von Mises", "w1": "Wasserstein of logs"}


@dataclass(frozen=True)
class Runs:
    """The valid runs of one place, by condition, then by block."""

    place: str
    conditions: Sequence[str]
    """As the report names them."""
    colours: Sequence[str]
    ends: Sequence[int]
    """Where the runs of each condition begin and, last, end."""
    matrices: "dict[str, Array]"
    """Distances (r, r) by title."""

    def between(self, matrix: "Array", condition: int, other: int) -> "Array":
        """Distances (n, m) of the runs of two conditions."""
        return matrix[self._of(condition), self._of(other)]

    def within(self, matrix: "Array", condition: int) -> "Array":
        """Distances (n, n - 1) of each run of a condition to its siblings."""
        import numpy as np

        found = self.between(matrix, condition, condition)
        others = ~np.eye(len(found), dtype=bool)
        return found[others].reshape(len(found), max(len(found) - 1, 0))

    def _of(self, condition: int) -> slice:
        return slice(self.ends[condition], self.ends[condition + 1])


def section(result: Result) -> Section:
    """Every pair of runs, then each run against the others of its condition."""
    every = sorted(result.experiment.distances, key=lambda place: place[1] != result.span)
    found = [_runs(result, place) for place in every[:PLACES]]
    more = plural(len(every) - PLACES, "more place") if len(every) > PLACES else ""
    note = f" Not drawn: {more}." if more else ""
    return Section(
        anchor="distances",
        name="Distances between runs",
        gist="whether runs of one condition are alike",
        how="Alike runs of one condition make a pale square on the diagonal. The squares next to it"
        " are dark if a condition differs. A dark cross is one run that is unlike the others. The"
        " table has the mean distance within a condition, and between it and the baseline.",
        figures=[
            Figures(
                [_map(runs) for runs in found if runs.ends[-1] > 1],
                "Distance between the distributions of each two runs, by condition, then by block."
                f" Rows and columns have the same order; darker is further apart.{note}",
            ),
            Figures(
                list(_ranges(found)),
                "Distance of each run to the other runs of its condition: least, mean (dot) and"
                f" most, in order of blocks.{note}",
            ),
        ],
        tables=[
            Table(
                "Mean distance of two runs",
                ("condition", "distance", "within a condition", "between both"),
                list(_means(result)),
                2,
            )
        ],
        absent="no two runs have requests that succeeded",
    )


def _means(result: Result) -> Iterator[Sequence[str]]:
    for comparison in sorted(result.primary_comparisons, key=result.rank):
        if comparison.shape is None:
            continue
        for apart in comparison.shape.apart:
            yield (
                whose(result, comparison),
                TOLD.get(apart.statistic, safe(apart.statistic, 24)),
                size(apart.within),
                size(apart.between),
            )


def size(distance: float) -> str:
    return count(distance) if distance >= 999.5 else f"{distance:#.3g}".removesuffix(".")


def _runs(result: Result, place: "SpanKey") -> Runs:
    import numpy as np

    known = result.experiment.distances[place]
    mine = [
        run
        for run in result.experiment.runs
        if (run.environment, run.span) == place and run.valid and run.run in known.runs
    ]
    there = {run.condition for run in mine}
    # The control stands beside the baseline, which it is.
    names = [name for name in result.conditions if name in there]
    names[1:1] = [name for name in there if name == result.experiment.control]
    groups = [sorted((r.block, r.run) for r in mine if r.condition == name) for name in names]
    at = [known.runs.index(run) for group in groups for _, run in group]
    return Runs(
        result.named(*place),
        [result.called(name) for name in names],
        [colours(result).get(name, SERIES[0]) for name in names],
        [0, *accumulate(map(len, groups))],
        {NAMES[kind]: known.of[kind][np.ix_(at, at)] for kind in NAMES},
    )


def _map(runs: Runs) -> Picture:
    sizes = [last - first for first, last in pairwise(runs.ends)]
    said = "; ".join(
        f"{title}: "
        + ", ".join(
            f"{safe(runs.conditions[0])} to {safe(name)} {_mean(runs.between(matrix, 0, number))}"
            if number
            else f"within {safe(name)} {_mean(runs.within(matrix, 0))}"
            for number, name in enumerate(runs.conditions)
        )
        for title, matrix in runs.matrices.items()
    )
    draw = partial(
        heat_map.draw,
        panels=list(runs.matrices.items()),
        groups=list(zip(runs.conditions, sizes, strict=True)),
    )
    return Picture(runs.place, inline(draw, f"Mean distances of {runs.ends[-1]} runs. {said}."))


def _ranges(found: Sequence[Runs]) -> Iterator[Picture]:
    for runs in found:
        panels = []
        for title, matrix in runs.matrices.items():
            every = [
                ranges.Group(name, colour, _spread(runs.within(matrix, number)))
                for number, (name, colour) in enumerate(
                    zip(runs.conditions, runs.colours, strict=True)
                )
            ]
            if groups := [group for group in every if group.runs]:
                panels.append((title, groups))
        if not panels:
            continue
        said = "; ".join(
            f"{title} within {safe(group.name)} "
            + ", ".join(f"{mean:.3g}" for _, mean, _ in group.runs)
            for title, groups in panels
            for group in groups
        )
        draw = partial(ranges.draw, panels=panels)
        yield Picture(runs.place, inline(draw, f"Mean distance of each run: {said}."))


def _spread(rows: "Array") -> list[tuple[float, float, float]]:
    import numpy as np

    return [
        (float(np.nanmin(row)), float(np.nanmean(row)), float(np.nanmax(row)))
        for row in rows
        if np.isfinite(row).any()  # too few requests for Anderson and Darling
    ]


def _mean(distances: "Array") -> str:
    import numpy as np

    known = distances[np.isfinite(distances)]
    return f"{known.mean():.3g}" if known.size else "none"
