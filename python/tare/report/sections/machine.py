# SPDX-License-Identifier: Apache-2.0
"""What the machine and the services did: Table 5.7 of Vinken's thesis, with more metrics.

As there, a value is a mean and a standard deviation; here they are over the averages of runs.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TYPE_CHECKING

from tare.report.pictures import Picture
from tare.report.result.result import Result
from tare.report.sections.sections import Figures, Section, Table
from tare.report.tables import where
from tare.report.typesetting import MINUS, NO_BREAK, change, percent
from tare.terminal import both_ends

if TYPE_CHECKING:
    import tare.samples.sql.table as sql

PLACES = 8
"""Columns of one table."""
Averages = Mapping[int, Mapping[tuple[str, str], float]]
"""By run, then by subject and metric."""
ColumnKey = tuple[str, str | None]
"""Environment and condition; None for all conditions."""
Values = Mapping[str, Sequence[float]]
"""The averages of runs by metric."""


@dataclass(frozen=True)
class Metric:
    """One row of the table: what it is called, and how its values are written."""

    name: str
    label: str
    write: Callable[[float, float | None], str]
    has_change: bool = True

    @property
    def ns_per_share(self) -> float | None:
        """What a value is divided by to be a share; None if it is none."""
        return 1.0 if self.write is _share else 1e9 if self.write is _of_second else None


def _scaled(units: Sequence[tuple[float, str]]) -> Callable[[float, float | None], str]:
    """Writes mean and deviation in the largest unit that fits the mean, or the deviation."""

    def write(mean: float, deviation: float | None) -> str:
        size = max(abs(mean), deviation or 0.0)
        scale, unit = next((pair for pair in units if size >= 0.9995 * pair[0]), units[-1])
        return _both(mean / scale, None if deviation is None else deviation / scale, unit)

    return write


def _both(mean: float, deviation: float | None, unit: str) -> str:
    """As many decimals as the larger of the two needs for three digits."""
    size = max(abs(mean), deviation or 0.0)
    digits = 0 if size >= 99.95 or size == 0 else 1 if size >= 9.995 else 2
    written = [f"{value:,.{digits}f}" for value in (mean, deviation) if value is not None]
    text = f"{NO_BREAK}±{NO_BREAK}".join(written).replace(",", "\u202f").replace("-", MINUS)
    return f"{text}{unit}" if unit.startswith("/") else f"{text}{NO_BREAK}{unit}"


def _share(mean: float, deviation: float | None) -> str:
    return _both(100 * mean, None if deviation is None else 100 * deviation, "%")


def _of_second(mean: float, deviation: float | None) -> str:
    """Nanoseconds per second as a share."""
    return _share(mean / 1e9, None if deviation is None else deviation / 1e9)


_bytes = _scaled([(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")])
_bytes_per_s = _scaled([(1e12, "TB/s"), (1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1.0, "B/s")])
_time = _scaled([(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")])
_hertz = _scaled([(1e9, "GHz"), (1e6, "MHz"), (1.0, "Hz")])
_per_s = _scaled([(1.0, "/s")])

MACHINE = (
    Metric("cpu_user", "CPU user", _share),
    Metric("cpu_system", "CPU system", _share),
    Metric("cpu_iowait", "CPU waiting for I/O", _share),
    Metric("cpu_irq", "CPU in interrupts", _share),
    Metric("steal", "CPU steal", _share),
    Metric("memory_applications", "memory of applications", _bytes),
    Metric("memory_used", "memory used", _bytes),
    Metric("memory_total", "memory total", _bytes, has_change=False),
    Metric("network_received", "network received", _bytes_per_s),
    Metric("network_transmitted", "network transmitted", _bytes_per_s),
    Metric("network_loopback", "network loopback", _bytes_per_s),
    Metric("context_switches", "context switches", _per_s),
    Metric("interrupts", "interrupts", _per_s),
    Metric("pressure_cpu", "some task waits for CPU", _of_second),
    Metric("pressure_io", "some task waits for I/O", _of_second),
    Metric("pressure_io_full", "all tasks wait for I/O", _of_second),
    Metric("pressure_memory", "some task waits for memory", _of_second),
    Metric("pressure_memory_full", "all tasks wait for memory", _of_second),
    Metric("frequency", "CPU frequency", _hertz),
    Metric("thermal_throttles", "thermal throttles", _per_s),
    Metric("clock_offset", "clock offset", _time, has_change=False),
    Metric("clock_error", "clock error, estimated", _time, has_change=False),
    Metric("clock_error_limit", "clock error, at most", _time, has_change=False),
)
SERVICE = (
    Metric("cpu_user", "CPU user", _of_second),
    Metric("cpu_system", "CPU system", _of_second),
    Metric("memory", "memory", _bytes),
    Metric("network_received", "network received", _bytes_per_s),
    Metric("network_transmitted", "network transmitted", _bytes_per_s),
    Metric("network_loopback", "network loopback", _bytes_per_s),
    Metric("pressure_cpu", "some thread waits for CPU", _of_second),
    Metric("pressure_io", "some thread waits for I/O", _of_second),
    Metric("pressure_memory", "some thread waits for memory", _of_second),
    Metric("throttled_time", "throttled by a CPU quota", _of_second),
    Metric("oom_kills", "processes killed, out of memory", _per_s),
)


def sections(
    result: Result, readings: "sql.Table | None", pictures: Mapping[str, Sequence[Picture]]
) -> list[Section]:
    """The machine, and the services; `pictures` by subject."""
    averages = {} if readings is None else _averages(result, readings)
    how = (
        "Mean ± standard deviation over runs, of the averages of their measured windows; in"
        " parentheses the change from the baseline. No verdict uses these values."
    )
    of_all = (
        " The services of a block are up together, so all conditions have the same machine:"
        ' design = "blocks" measures one after the other.'
    )
    caption = "Each line is a run. A metric that is always 0 is not drawn."
    return [
        Section(
            anchor="machine",
            name="Machine",
            gist="CPU, memory, network, pressure and clock of the machine",
            how=f"{how} CPU times are shares of all CPUs.{of_all * is_shared(result)}",
            figures=[Figures(pictures["machine"], caption)],
            tables=list(tables(result, averages, "machine")),
            absent="nothing was read of the machine per second",
        ),
        Section(
            anchor="services",
            name="Services",
            gist="CPU time and memory of the service of each condition",
            how=f"{how} Proxies are part of their service. CPU times are shares of one CPU.",
            figures=[Figures(pictures["service"], caption)],
            tables=list(tables(result, averages, "service")),
            absent="nothing was read of the services per second",
        ),
    ]


def is_shared(result: Result) -> bool:
    """Whether all conditions of a block have the same readings of the machine."""
    return result.manifest.design == "interleaved"


def tables(result: Result, averages: Averages, subject: str) -> Iterator[Table]:
    """A row for each metric, a column for each condition in each environment.

    If there are too many columns for one table, each environment has a table of its own, with the
    first conditions.
    """
    shared = subject == "machine" and is_shared(result)
    conditions: list[str | None] = [None] if shared else [*result.conditions]
    environments = result.environments
    if len(environments) * len(conditions) <= PLACES:
        groups = [[(environment, of) for environment in environments for of in conditions]]
    else:
        groups = [[(environment, of) for of in conditions[:PLACES]] for environment in environments]
    for places in groups:
        values = {place: _values(result, averages, subject, place) for place in places}
        shown = [place for place in places if values[place]]
        rows = [
            [metric.label, *(_cell(result, metric, place, values) for place in shown)]
            for metric in (MACHINE if subject == "machine" else SERVICE)
            if any(metric.name in values[place] for place in shown)
        ]
        names = [where(result, environment, of or "all conditions") for environment, of in shown]
        label = subject if len(groups) == 1 else f"{subject}, {both_ends(places[0][0], 24)}"
        yield Table(label.capitalize(), ["metric", *names], rows)


def _cell(
    result: Result, metric: Metric, place: ColumnKey, values: Mapping[ColumnKey, Values]
) -> str:
    """Mean, deviation, and the change from the baseline in the same environment."""
    mine = values[place].get(metric.name)
    if not mine:
        return "–"
    mean = fmean(mine)
    text = metric.write(mean, stdev(mine) if len(mine) > 1 else None)
    base: ColumnKey = place[0], result.baseline
    if len(result.conditions) == 1:  # then environments are compared with the first environment
        base = result.environments[0], place[1]
    of_base = values.get(base, {}).get(metric.name)
    if base == place or not of_base or not metric.has_change:
        return text
    baseline = fmean(of_base)
    if mean == baseline == 0:
        return text
    if metric.ns_per_share is not None:
        return f"{text} ({change((mean - baseline) / metric.ns_per_share, 'share')})"
    return f"{text} ({percent(mean / baseline - 1)})" if baseline else text


def _values(result: Result, averages: Averages, subject: str, place: ColumnKey) -> Values:
    """The averages of the valid runs of a place by metric: one run of each block if shared."""
    environment, condition = place
    runs = {
        run.block: run.run
        for run in result.runs
        if run.valid and run.environment == environment and condition in (None, run.condition)
    }
    found: dict[str, list[float]] = {}
    for run in runs.values():
        for (of, metric), value in averages.get(run, {}).items():
            if of == subject:
                found.setdefault(metric, []).append(value)
    return found


def _averages(result: Result, readings: "sql.Table") -> Averages:
    from tare.samples.describe.metrics import averages

    return averages(readings, [run for run in result.runs if run.valid])
