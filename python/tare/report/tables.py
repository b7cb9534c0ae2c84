# SPDX-License-Identifier: Apache-2.0
"""The rows of the report's tables, as text."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

from tare.report.result import distributions
from tare.report.result.result import Result
from tare.report.result.verdicts import Compared
from tare.report.typesetting import (
    change,
    count,
    duration,
    interval,
    metric,
    p_value,
    percent,
    safe,
    typeset,
    values,
)
from tare.samples.manifest import RunEntry
from tare.terminal import both_ends

if TYPE_CHECKING:
    from tare.samples.sql.table import Table

    pass

_FOUND = ("matches", "blocked")
"""Counters of functions whose sum is of interest."""
_TIMES = ("timeout", "duration", "warmup", "slice")
"""Settings of the load in nanoseconds."""


@dataclass(frozen=True)
class Metric:
    """A row of the table of all metrics; the reason of a primary metric stands beside the table."""

    primary: bool
    where: str
    verdict: str
    cells: Sequence[str]
    reason: str


METRIC_COLUMNS = (
    "metric",
    "effect",
    "baseline → condition",
    "interval",
    "p",
    "p adjusted",
    "runs",
    "detectable",
    "needed",
)


def metrics(result: Result) -> Iterator[Metric]:
    """Every comparison, the primary comparisons first: here, and only here, with its p-values."""
    for comparison in result.ranked:
        cells = (
            safe(metric(comparison.metric), 24),
            *_effect(comparison),
            p_value(comparison.p),
            p_value(comparison.p_adjusted),
            f"{count(comparison.runs.baseline)} + {count(comparison.runs.condition)}",
            percent(comparison.mde, signed=False),
            count(comparison.runs_needed),
        )
        yield Metric(
            primary=comparison.metric == result.primary,
            where=whose(result, comparison),
            verdict=comparison.verdict,
            cells=cells,
            reason=typeset(safe(comparison.reason)),
        )


CPU_COLUMNS = (
    "condition",
    "service",
    "generator",
    "agents, per second",
    "slices left out",
    "most in a run",
)


def processor(result: Result) -> Iterator[Sequence[str]]:
    """CPU time a request, median over valid runs, and the share of slices left out.

    Of agents that cover the machine it is the CPU time per second of their turns.
    """
    left_out = {run.run: run.left_out for run in result.measured}
    valid = _valid(result)
    for environment in result.environments:
        for condition in result.conditions:
            mine = valid.get((environment, condition))
            if not mine:
                continue
            shares = [left_out.get(run.run, 0.0) for run in mine]
            yield (
                where(result, environment, condition),
                duration(_median(mine, "service_ns_per_request")),
                duration(_median(mine, "generator_ns_per_request")),
                duration(_median(mine, "agents_ns_per_second")),
                percent(sum(shares) / len(shares), signed=False),
                percent(max(shares), signed=False),
            )


COST_COLUMNS = (
    "layer",
    "condition",
    "function",
    "calls on sockets",
    "other calls",
    "bytes searched",
    "own time, median",
    "99th percentile",
    "total",
)


def costs(result: Result, table: "Table") -> Iterator[Sequence[str]]:
    """One row a function of a layer: its calls and the layer's own time in them."""
    times = distributions.own_times(table)
    counted = distributions.counters(table)
    for key in sorted({*times, *(key for key, _ in counted if key.function)}):
        bins = times.get(key)
        yield (
            safe(key.layer, 24),
            where(result, key.environment, key.condition),
            safe(key.function, 40),
            *(count(counted.get((key, name))) for name in ("calls_socket", "calls_other")),
            count(counted.get((key, "bytes_searched"))),
            duration(None if bins is None else distributions.binned_quantile(bins, 0.5)),
            duration(None if bins is None else distributions.binned_quantile(bins, 0.99)),
            duration(None if bins is None else distributions.binned_sum(bins)),
        )


def whole_layers(result: Result, table: "Table") -> Iterator[tuple[str, str]]:
    """What each layer counted beside its functions, and what it found in all of them."""
    counters = distributions.counters(table)
    found: dict[tuple[distributions.Function, str], int] = {}
    for (key, name), number in counters.items():
        if not key.function or name in _FOUND:
            whole = key._replace(function="")
            found[whole, name] = found.get((whole, name), 0) + number
    for (key, name), number in found.items():
        if number:
            of = where(result, key.environment, key.condition)
            counted = safe(name, 40).replace("_", " ")
            yield f"{safe(key.layer, 24)} of {of}: {counted}", count(number)


MICRO_MACRO_COLUMNS = (
    "condition",
    "metric",
    "own time per request",
    "difference",
    "interval",
    "own time / difference",
)


def micro_macro(result: Result, table: "Table") -> Iterator[Sequence[str]]:
    """The layer's own time a request against the measured difference, at p50 and at the mean."""
    own, valid = distributions.own_times(table), _valid(result)
    for comparison in result.ranked:
        name, place = comparison.metric, (comparison.environment, comparison.condition)
        functions = [bins for key, bins in own.items() if key[1:3] == place]
        requests = sum(run.requests or 0 for run in valid.get(place, ()))
        of_requests = comparison.span == result.span
        if name not in ("p50", "mean") or not of_requests or not functions or not requests:
            continue
        spent = sum(
            distributions.binned_quantile(bins, 0.5) * bins[:, 2].sum()
            if name == "p50"
            else distributions.binned_sum(bins)
            for bins in functions
        )
        micro = spent / requests
        yield (
            where(result, *place),
            name,
            duration(micro),
            duration(comparison.effect.absolute_ns, signed=True),
            _effect(comparison)[2],
            _share(micro, comparison),
        )


def _share(micro: float, comparison: Compared) -> str:
    """There is no share of a difference whose interval includes zero, or that has none."""
    macro = comparison.effect.absolute_ns
    low, high = comparison.interval.low, comparison.interval.high
    if low is None or high is None:
        return "–"
    if low <= 0 <= high:
        return "interval includes zero"
    return percent(micro / macro, signed=False) if macro and macro > 0 else "–"


def facts(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Flat names and values of a nested mapping, without those that are empty."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            for inner, text in facts(value):
                yield f"{safe(name, 60)} {inner}", text
        elif value is not None and value not in ("", []):
            yield safe(name, 60).replace("_", " "), _fact(name, value)


def _fact(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(safe(item, 200) for item in value)
    if name in _TIMES and isinstance(value, int | float):
        return duration(value)
    return safe(value, 300)


def _effect(comparison: Compared) -> tuple[str, str, str]:
    """An effect in percent, both values, and its interval."""
    effect, bounds, unit = comparison.effect, comparison.interval, comparison.unit
    return (
        change(effect.difference if unit == "share" else effect.relative, unit),
        both_values(comparison),
        interval(bounds.low, bounds.high, unit),
    )


def both_values(comparison: Compared) -> str:
    """The baseline's value and the condition's; of older verdicts their difference alone."""
    both = comparison.values
    if both is None:
        return duration(comparison.effect.absolute_ns, signed=True)
    return values(both.baseline, both.condition, comparison.unit)


def where(result: Result, environment: object, condition: object, span: object = None) -> str:
    """A condition, its environment and its span, of those of which there are several."""
    parts = [both_ends(condition, 40)]
    if len(result.environments) > 1:
        parts.append(both_ends(environment, 24))
    if span is not None and len(result.spans) > 1:
        parts.append(both_ends(span, 24))
    return ", ".join(parts)


def whose(result: Result, comparison: Compared) -> str:
    """What a comparison is of, as `where` says it."""
    return where(result, comparison.environment, comparison.condition, comparison.span)


def _valid(result: Result) -> dict[tuple[str, str], list[RunEntry]]:
    """The valid runs of each environment and condition."""
    found: dict[tuple[str, str], list[RunEntry]] = {}
    for run in result.runs:
        if run.valid:
            found.setdefault((run.environment, run.condition), []).append(run)
    return found


def _median(runs: Sequence[RunEntry], name: str) -> float | None:
    known = [value for run in runs if (value := run.cpu.get(name)) is not None]
    return median(known) if known else None
