# SPDX-License-Identifier: Apache-2.0
"""Chooses what each figure shows of a result, has it drawn, and says its numbers in words."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from markupsafe import Markup

from tare.report import distributions
from tare.report.distributions import Curve, Place
from tare.report.figures import boxes, effects, lag, own_time, percentiles, runs
from tare.report.figures.canvas import SERIES, inline
from tare.report.result import Result
from tare.report.words import both_ends, count, duration, metric, percent, plural, safe

if TYPE_CHECKING:
    import ibis.expr.types as ir
    import numpy as np
    from numpy.typing import NDArray

LAG_PANELS = 8
FUNCTIONS = 6
SELDOM = 0.01
"""Functions with a smaller share of a layer's calls are not drawn."""

Legend = Sequence[tuple[str, str]]
"""Names and their colours."""
T = TypeVar("T")


@dataclass(frozen=True)
class Picture:
    """One figure: whose it is, its two drawings, its legend, and what was left out of it."""

    of: str
    drawings: Markup
    legend: Legend = ()
    note: str = ""


def colours(result: Result) -> dict[str, str]:
    """The colour of each condition, the same in every figure; the baseline is grey."""
    rest = SERIES[1:]
    return {
        name: rest[(number - 1) % len(rest)] if name != result.baseline else SERIES[0]
        for number, name in enumerate(result.conditions)
    }


def forest(result: Result) -> Iterator[Picture]:
    """Effect and interval of every metric."""
    colour = colours(result)
    for environment in result.environments:
        rows = [
            effects.Effect(
                condition=one.condition,
                span=one.span if len(result.spans) > 1 else "",
                metric=metric(one.metric),
                colour=colour.get(one.condition, SERIES[1]),
                primary=one.metric == result.primary,
                value=one.effect.relative,
                low=one.interval.low,
                high=one.interval.high,
                threshold=result.threshold(one),
            )
            for one in sorted(result.ranked, key=result.rank)
            if one.environment == environment and one.effect.relative is not None
            if one.unit == "ns"
        ]
        if not rows:
            continue
        said = "; ".join(
            f"{safe(row.name)} {percent(row.value)}"
            + (f", {percent(row.low)} to {percent(row.high)}" if row.low is not None else "")
            for row in rows
        )
        label = (
            f"Differences from {safe(result.baseline)}: {said}. "
            f"Budget {percent(result.budget, signed=False)} either way."
        )
        draw = partial(effects.draw, effects=rows)
        yield Picture(environment, inline(draw, label))


def percentile_plots(result: Result, curves: Mapping[int, Curve]) -> Iterator[Picture]:
    """Percentile curves of every run."""
    places = result.places
    for environment in result.environments:
        lines = {}
        for name, colour in colours(result).items():
            mine = [curves[run] for run in curves if places[run] == (environment, name)]
            if mine:
                lines[name] = percentiles.Line(colour, mine)
        if not lines:
            continue
        thinned = any(len(line.drawn()) < len(line.runs) for line in lines.values())
        note = f"{percentiles.THIN_LINES} runs of a condition, evenly spread over the experiment"
        said = "; ".join(
            f"{safe(name)} {_in_words(distributions.middle(line.runs))}"
            for name, line in lines.items()
        )
        draw = partial(percentiles.draw, lines=list(lines.values()))
        yield Picture(
            environment,
            inline(draw, f"Latency by percentile, median over runs: {said}."),
            [(both_ends(name, 40), line.colour) for name, line in lines.items()],
            f"Thin lines: {note}; the bold line is the median over all runs." if thinned else "",
        )


def box_plots(result: Result, samples: "ir.Table") -> Iterator[Picture]:
    """Tukey's boxes over the kept requests of every condition."""
    found = distributions.boxes(samples, result.places)
    for environment, mine in _by_environment(result, found):
        rows = [(name, colour, box) for name, colour, box in mine]
        said = "; ".join(
            f"{safe(name)} median {duration(box.median)}, quartiles {duration(box.first)} and "
            f"{duration(box.third)}, whiskers {duration(box.low)} and {duration(box.high)}"
            for name, _, box in rows
        )
        hidden = ", ".join(
            f"{percent(box.beyond / box.requests, signed=False)} of {both_ends(name, 40)}"
            for name, _, box in rows
        )
        yield Picture(
            environment,
            inline(partial(boxes.draw, rows=rows), f"Box plots of latency: {said}."),
            note=f"Beyond the whiskers, not drawn: {hidden}.",
        )


def lag_plots(result: Result, samples: "ir.Table") -> Iterator[Picture]:
    """The first requests of the first valid run of each condition, with those of the warm-up."""
    first: dict[Place, int] = {}
    for run, place in sorted(result.places.items()):
        first.setdefault(place, run)
    for environment, mine in _by_environment(result, first):
        panels = []
        for name, colour, run in mine[:LAG_PANELS]:
            values = distributions.first_requests(samples, run)
            if len(values):
                panels.append((name, colour, values))
        if not panels:
            continue
        said = "; ".join(
            f"{safe(name)} {count(len(values))} requests from {duration(float(values.min()))} to "
            f"{duration(float(values.max()))}"
            for name, _, values in panels
        )
        more = len(mine) - LAG_PANELS
        yield Picture(
            environment,
            inline(partial(lag.draw, panels=panels), f"Round trips in order: {said}."),
            note=f"{more} more conditions are not drawn." if more > 0 else "",
        )


def run_plots(result: Result) -> Iterator[Picture]:
    """The primary metric of every valid run."""
    values: dict[Place, list[tuple[int, float]]] = {}
    for run in result.measured:
        if run.valid and result.primary in run.summaries:
            place = (run.environment, run.condition)
            values.setdefault(place, []).append((run.block, run.summaries[result.primary]))
    for environment, mine in _by_environment(result, values):
        said = "; ".join(
            f"{safe(name)} {', '.join(duration(value) for _, value in found)}"
            for name, _, found in mine
        )
        series = [(colour, found) for _, colour, found in mine]
        yield Picture(
            environment,
            inline(partial(runs.draw, series=series), f"{result.primary} of every run: {said}."),
            [(both_ends(name, 40), colour) for name, colour, _ in mine],
        )


def own_time_plots(result: Result, costs: "ir.Table") -> Iterator[Picture]:
    """The layers' own time by function, one picture a layer and condition."""
    found: dict[str, dict[str, NDArray[np.float64]]] = {}
    for key, bins in distributions.own_times(costs).items():
        of = f"{key.layer} of {key.condition}"
        of += f", {key.environment}" if len(result.environments) > 1 else ""
        found.setdefault(of, {})[key.function] = bins
    for of, functions in found.items():
        calls = {name: float(bins[:, 2].sum()) for name, bins in functions.items()}
        often = [name for name in calls if calls[name] >= SELDOM * sum(calls.values())]
        most = sorted(often, key=lambda name: -calls[name])[:FUNCTIONS]
        rows = [
            (SERIES[1 + number % (len(SERIES) - 1)], functions[name])
            for number, name in enumerate(most)
        ]
        said = "; ".join(
            f"{safe(name)} {count(calls[name])} calls, median "
            f"{duration(distributions.binned_quantile(functions[name], 0.5))}"
            for name in most
        )
        more = len(functions) - len(most)
        yield Picture(
            of,
            inline(partial(own_time.draw, rows=rows), f"Own time of one call: {said}."),
            [(safe(name, 24), colour) for name, (colour, _) in zip(most, rows, strict=True)],
            f"{plural(more, 'function')} with fewer calls in the table only." if more else "",
        )


def _by_environment(
    result: Result, found: Mapping[Place, T]
) -> Iterator[tuple[str, list[tuple[str, str, T]]]]:
    """What was found for each condition, with its colour, where there is any."""
    for environment in result.environments:
        mine = [
            (name, colour, found[environment, name])
            for name, colour in colours(result).items()
            if (environment, name) in found
        ]
        if mine:
            yield environment, mine


def _in_words(curve: Curve) -> str:
    import numpy as np

    parts = []
    for name, tail in (("p50", 0.30103), ("p90", 1.0), ("p99", 2.0), ("p99.9", 3.0)):
        if tail <= curve.tail[-1] + 1e-9:
            parts.append(f"{name} {duration(float(np.interp(tail, curve.tail, curve.latency_ns)))}")
    return ", ".join(parts)
