# SPDX-License-Identifier: Apache-2.0
"""Metrics of machine and services over the time of day."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING

from tare.report.figures import scales, time_series
from tare.report.figures.canvas import inline
from tare.report.figures.marks import SERIES
from tare.report.pictures import Legend, Picture, colours
from tare.report.result.result import Result
from tare.report.sections.machine import MACHINE, SERVICE, Metric, is_shared
from tare.report.typesetting import plural
from tare.terminal import both_ends

if TYPE_CHECKING:
    import tare.samples.sql.table as sql
    from tare.samples.describe.metrics import Moment

POINTS = 1_200
"""Points of one panel, of all its runs and of all environments together."""
RUNS = 48
"""Runs of one figure; of more, an even selection."""
_MACHINE = (
    "cpu_user", "cpu_system", "cpu_iowait", "steal", "memory_applications", "network_received",
    "network_transmitted", "context_switches", "interrupts", "pressure_cpu", "frequency",
    "clock_offset", "clock_error_limit",
)  # fmt: skip
_SERVICE = ("cpu_user", "cpu_system", "memory", "network_received", "throttled_time")


def pictures(result: Result, readings: "sql.Table | None", subject: str) -> Iterator[Picture]:
    """The course of the metrics of one subject in each environment; what is always 0 has none."""
    if readings is None:
        return
    for environment in result.environments:
        chosen = _runs(result, environment, subject)
        if not chosen:
            continue
        drawn = chosen[:: -(-len(chosen) // RUNS)]
        points = max(POINTS // (len(drawn) * len(result.environments)), 8)
        metrics = _metrics(result, readings, subject, dict(drawn), points)
        if not metrics:
            continue
        names: dict[str, str] = {
            run.name: run.colour for metric in metrics for run in metric.series
        }
        legend: Legend = [(both_ends(name, 40), colour) for name, colour in names.items()]
        text = "; ".join(_said(metric) for metric in metrics)
        some = f" {plural(len(drawn), 'run')} of {len(chosen)}, evenly selected."
        yield Picture(
            environment,
            inline(partial(time_series.draw, metrics=metrics), f"{subject.capitalize()}: {text}."),
            legend,
            some * (len(drawn) < len(chosen)),
        )


def _runs(result: Result, environment: str, subject: str) -> list[tuple[int, str]]:
    """The valid runs in an environment, with the condition that each stands for."""
    mine = [run for run in result.runs if run.valid and run.environment == environment]
    if subject == "machine" and is_shared(result):
        return [*{run.block: (run.run, "all conditions") for run in mine}.values()]
    control = result.experiment.control
    return [(run.run, run.condition) for run in mine if run.condition != control]


def _metrics(
    result: Result, readings: "sql.Table", subject: str, runs: Mapping[int, str], points: int
) -> list[time_series.Metric]:
    from tare.samples.describe.metrics import CPU_TIMES
    from tare.samples.describe.metrics import courses as read

    shown = _MACHINE if subject == "machine" else _SERVICE
    keys = [(subject, name) for name in dict.fromkeys((*shown, *CPU_TIMES))]
    found = read(readings, [*runs], keys, points)
    whole = _all_cpus(found, runs) if subject == "machine" else {}
    colour = colours(result)
    declared = {metric.name: metric for metric in (MACHINE if subject == "machine" else SERVICE)}
    metrics = []
    for name in shown:
        of_runs = found.get((subject, name), {})
        divisors = {run: whole.get(run, 1.0) if name in CPU_TIMES else 1.0 for run in of_runs}
        lines = [
            time_series.TimeSeries(
                runs[run],
                colour.get(runs[run], SERIES[0]),
                [moment.at_ns for moment in moments],
                [moment.value / divisors[run] for moment in moments],
            )
            for run, moments in of_runs.items()
        ]
        if any(any(line.values) for line in lines):
            metrics.append(_panel(declared[name], lines))
    return metrics


def _all_cpus(
    found: "Mapping[tuple[str, str], Mapping[int, Sequence[Moment]]]", runs: Mapping[int, str]
) -> dict[int, float]:
    """The time of all CPUs per second in each run."""
    from tare.samples.describe.metrics import CPU_TIMES

    totals = {}
    for run in runs:
        times = [found.get(("machine", name), {}).get(run, ()) for name in CPU_TIMES]
        totals[run] = sum(fmean(moment.value for moment in time) for time in times if time)
    return totals


def _panel(metric: Metric, lines: Sequence[time_series.TimeSeries]) -> time_series.Metric:
    """In the unit of its largest value."""
    divisor = metric.ns_per_share

    def write(value: float) -> str:
        return metric.write(value, None)

    def scale(low: float, high: float) -> scales.Scale:
        if divisor is not None:
            found = scales.shares(low / divisor, high / divisor, 3)
            ticks = [scales.Tick(tick.at * divisor, tick.label) for tick in found.ticks]
            return scales.Scale(low, high, ticks)
        return scales.linear(low, high, write, 3)

    return time_series.Metric(metric.label, scale, write, lines)


def _said(metric: time_series.Metric) -> str:
    values = [value for run in metric.series for value in run.values]
    return f"{metric.title} {metric.write(min(values))} to {metric.write(max(values))}"
