# SPDX-License-Identifier: Apache-2.0
"""Experiments from result folders: one by itself, or two to be compared across."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tare.errors import InputError
from tare.samples.describe.load_stats import load_stats
from tare.samples.describe.rates import throughputs, with_rates
from tare.samples.describe.span_tree import IDS
from tare.samples.describe.steadiness import taking_turns, with_place
from tare.samples.describe.traces import Traces, traces
from tare.samples.describe.usable_rows import lost_share
from tare.samples.describe.warm_up_cuts import CutSummaries, CutSummary, look, nothing
from tare.samples.engines import StoredHistograms, open_engine
from tare.samples.manifest import Manifest, RunEntry
from tare.samples.model import REQUEST, Experiment, LoadStats, Run
from tare.samples.notes import TraceWarning, grouped, of_lab
from tare.samples.read.result import Result, open_result, readable
from tare.samples.sql.column import functions_of
from tare.samples.sql.engine import connect
from tare.samples.sql.group_numbers import Group, of_runs

if TYPE_CHECKING:
    from tare.samples.sql.table import Table

OLD, NEW = "old", "new"
KEPT = 20_000_000
"""Samples up to which what counts of them is kept at hand: they are looked at several times."""


@dataclass(frozen=True)
class _Part:
    """A result in an experiment: how much is added to its run numbers, and to its names."""

    result: Result
    offset: int = 0
    side: str = ""

    @property
    def entries(self) -> list[RunEntry]:
        """The manifest's runs as the experiment calls them, by environment and condition in the
        order of the plan."""
        manifest = self.result.manifest
        conditions = [condition.name for condition in manifest.conditions]
        return [
            entry.model_copy(
                update={
                    "run": entry.run + self.offset,
                    "condition": entry.condition + self.side,
                    **self._fault(entry.run),
                }
            )
            for entry in sorted(
                manifest.runs,
                key=lambda run: (
                    _rank(manifest.environments, run.environment),
                    _rank(conditions, run.condition),
                ),
            )
        ]

    def _fault(self, run: int) -> dict[str, Any]:
        """What a run's entry has instead if its samples are not those that were measured."""
        if (why := self.result.altered.get(run)) is None:
            return {}
        return {"valid": False, "reason": why, "requests": None, "errors": None}

    def samples(self) -> Table | None:
        """What counts of its samples: `run`, `span`, `place`, `latency_ns`, `ok`."""
        samples = self.result.samples()
        if samples is None:
            return None
        # What a run left that was killed before the manifest named it is in none.
        known = [entry.run for entry in self.result.manifest.runs]
        placed = with_place(of_runs(samples, known))
        kept = placed.filter(~placed.left_out)
        return kept.select(
            "span",
            "ok",
            run=kept.run.cast("int64") + self.offset,
            place=kept.place.cast("int64"),
            latency_ns=kept.latency_ns.cast("int64"),
        )

    @property
    def warnings(self) -> list[str]:
        """Of the lab, and of what was left out."""
        where = f"{self.side.removeprefix('@')}: " if self.side else ""
        own = of_lab(self.result.manifest.warnings)
        lost = self.result.lost
        rows, runs = sum(lost.values()), ", ".join(map(str, sorted(lost)))
        more = [f"{rows:,} rows without a usable time (run {runs}): left out"] if lost else []
        return [where + line for line in (*own, *self.result.left_out.warnings, *more)]

    @property
    def rows(self) -> float:
        """How many samples there are; infinitely many where another engine has them."""
        return inf if self.result.engine is not None else self.result.rows

    @property
    def kept(self) -> StoredHistograms | None:
        """Its histograms; None where its samples are not in its folder."""
        engine = self.result.engine
        if engine is not None and not engine.reads_files:
            return None
        return StoredHistograms(self.result.folder, frozenset(self.result.left_out.slices))

    def stats_of(self, groups: Collection[Group]) -> dict[Group, LoadStats]:
        """How the load and the recording went of these runs and spans of the experiment."""
        samples = self.result.samples()
        known = {entry.run for entry in self.result.manifest.runs}
        mine = [(run - self.offset, span) for run, span in groups if run - self.offset in known]
        found = {} if samples is None else load_stats(samples, mine)
        return {(run + self.offset, span): stats for (run, span), stats in found.items()}

    def traces(self, first: Mapping[Group, int]) -> Traces:
        """Its traces, from the first request of each of the experiment's runs and spans on."""
        samples = self.result.samples()
        mine = {entry.run for entry in self.entries}
        if samples is None or not set(samples.columns) >= IDS:
            return Traces()
        samples = with_place(of_runs(samples, [run - self.offset for run in mine]))
        samples = samples.filter(~samples.left_out)
        return traces(
            samples.mutate(run=samples.run.cast("int64") + self.offset),
            {group: cut for group, cut in first.items() if group[0] in mine},
        )

    def throughputs(self, spans: Collection[str]) -> dict[Group, float]:
        """Requests per second of the experiment's runs and `spans`."""
        if len(spans) == 1 and not self.result.left_out.slices:
            # All rows have it.
            (span,) = spans
            runs = self.result.throughputs.items()
            return {(run + self.offset, span): rate for run, rate in runs}
        samples = self.result.samples()
        found = {} if samples is None else throughputs(samples)
        return {(run + self.offset, span): rate for (run, span), rate in found.items()}

    @property
    def turns(self) -> dict[str, list[list[int]]]:
        """The runs that took turns, by environment and side."""
        return {
            f"{environment}{self.side}": [[run + self.offset for run in block] for block in blocks]
            for environment, blocks in taking_turns(self.result.manifest).items()
        }

    @property
    def lost(self) -> dict[int, int]:
        """How many rows of each run have no usable time."""
        return {run + self.offset: rows for run, rows in self.result.lost.items()}

    @property
    def left_out(self) -> dict[int, float]:
        """The share of slices left out of each run."""
        shares = self.result.left_out.shares
        return {run + self.offset: share for run, share in shares.items()}

    @property
    def disturbed(self) -> set[int]:
        """The runs that other tasks disturbed for more than half of their load."""
        return {run + self.offset for run in self.result.left_out.disturbed}


def _rank(names: Sequence[str], name: str) -> int:
    """The place of a name; that of a name that is not there is the last."""
    return names.index(name) if name in names else len(names)


def read_result(folder: Path, engine: str | None = None) -> Experiment:
    """All runs of a result folder, invalid runs too, with their summaries.

    `engine` counts the samples, as `open_engine` names it; unless given, DuckDB in this process.

    Slices in which something else had the CPU are left out in pairs, and so is the warm-up that
    runs still have in them: docs/internals/statistics.md. Raises InputError when the folder is
    none.
    """
    return read_with_looks(folder, engine)[0]


def read_with_looks(folder: Path, engine: str | None = None) -> tuple[Experiment, CutSummaries]:
    """`read_result`, and what a report shows of it: how each run went, and where it was cut."""
    with readable(folder, engine):
        named = None if engine is None else open_engine(engine)
        part = _Part(open_result(Path(folder), engine=named))
        manifest = part.result.manifest
        return _experiment([part], manifest.baseline, manifest.control)


def read_both(old: Path, new: Path) -> Experiment:
    """All runs of two result folders as one experiment, unpaired.

    Conditions are called NAME@old and NAME@new, which none of a plan can be called; the baseline
    is that of `old`. Budget, primary metric and alpha are those of `old`, as they stood before
    there was anything to like better. What neither can detect is the larger limit of the two.
    """
    backend = connect()
    with readable(old):
        first = _Part(open_result(Path(old), backend), 0, f"@{OLD}")
        last = max((entry.run for entry in first.entries), default=0)
    with readable(new):
        second = _Part(open_result(Path(new), backend), last, f"@{NEW}")
        kinds = [part.result.manifest.compare for part in (first, second)]
        if kinds[0] != kinds[1]:
            raise InputError(
                f"{old} compares {kinds[0]}, and {new} {kinds[1]}: they cannot be compared"
            )
        baseline = f"{first.result.manifest.baseline}@{OLD}"
        return replace(_experiment([first, second], baseline, None)[0], paired=False)


def _experiment(
    parts: Sequence[_Part], baseline: str, control: str | None
) -> tuple[Experiment, CutSummaries]:
    entries = [entry for part in parts for entry in part.entries]
    tables = [table for part in parts if (table := part.samples()) is not None]
    conditions = {entry.run: (entry.environment, entry.condition) for entry in entries}
    samples = (
        functions_of(tables[0]).union(*tables) if len(tables) > 1 else next(iter(tables), None)
    )
    if samples is not None and sum(part.rows for part in parts) <= KEPT:
        samples = samples.cache()
    turns = {place: blocks for part in parts for place, blocks in part.turns.items()}
    kept = parts[0].kept if len(parts) == 1 else None
    seen = nothing() if samples is None else look(samples, conditions, turns=turns, kept=kept)
    spans = _spans(entries, seen.at_cut)
    left_out = {run: share for part in parts for run, share in part.left_out.items()}
    disturbed = {run for part in parts for run in part.disturbed}
    lost = _lost(parts, seen.at_cut)
    stats_of = {
        group: stats for part in parts for group, stats in part.stats_of(seen.sizes).items()
    }
    traced = Traces()
    for part in parts:
        traced.add(part.traces(seen.first))
    names = {span for _, span in seen.sizes}
    rates = {group: rate for part in parts for group, rate in part.throughputs(names).items()}
    declared = parts[0].result.manifest
    limits = _limits(part.result.manifest for part in parts)

    def at(cut: CutSummary) -> Experiment:
        return Experiment(
            runs=tuple(
                replace(
                    with_rates(_run(entry, span, cut), rates),
                    left_out=left_out.get(entry.run, 0.0),
                    disturbed=entry.run in disturbed,
                    lost=lost.get(entry.run, 0.0),
                    zeros=seen.zeros.get((entry.run, span), 0),
                    steadiness=seen.kind((entry.run, span)),
                    step_ns=seen.steps.get((entry.run, span), 0),
                    drift=cut.drifts.get((entry.run, span)),
                    worth=seen.worth((entry.run, span)),
                    beginning=seen.beginning((entry.run, span)),
                    load_stats=stats_of.get((entry.run, span), LoadStats()),
                )
                for entry in entries
                for span in spans[entry.run]
            ),
            compare=declared.compare,
            baseline=baseline,
            paired=True,
            budget=declared.budget,
            primary=declared.primary,
            alpha=declared.alpha,
            smoke=any(part.result.manifest.smoke for part in parts),
            # Against another experiment it is judged by other runs, and for the first time.
            looks=tuple(declared.looks) if len(parts) == 1 else (),
            control=control,
            distances=cut.distances,
            limits=limits,
            max_errors=declared.max_errors,
        )

    experiment = replace(
        at(seen.at_cut),
        traces=traced.of,
        structures=traced.structures,
        calls=traced.calls,
        cuts={name: at(cut) for name, cut in seen.others.items()},
        warnings=(
            *(line for part in parts for line in part.warnings),
            *_trace_warnings(entries, traced),
            *_alarming(declared),
            *seen.told(),
        ),
    )
    return experiment, seen


def _lost(parts: Sequence[_Part], cut: CutSummary) -> dict[int, float]:
    """The share of the rows of each run that are no requests."""
    usable: dict[int, int] = {}
    for (run, _), described in cut.groups.items():
        usable[run] = usable.get(run, 0) + described.requests
    return {
        run: lost_share(rows, rows + usable.get(run, 0))
        for part in parts
        for run, rows in part.lost.items()
    }


def _limits(manifests: Iterable[Manifest]) -> dict[tuple[str, str, str], float]:
    """Detection limits in ns, by environment, span and metric, as they stood when each began.

    The largest of those that several have.
    """
    found: dict[tuple[str, str, str], float] = {}
    for limit in (limit for manifest in manifests for limit in manifest.limits):
        if limit.undetected_ns is not None:
            place = limit.environment, limit.span, limit.statistic
            found[place] = max(found.get(place, 0.0), limit.undetected_ns)
    return found


def _trace_warnings(entries: Sequence[RunEntry], traced: Traces) -> Iterator[str]:
    """What is wrong with the traces of the runs."""
    lines = [
        (entry.condition, f"run {entry.run} ({entry.condition})", line)
        for entry in entries
        for line in traced.lines.get(entry.run, ())
    ]
    return map(TraceWarning, grouped(lines, "run"))


def _alarming(manifest: Manifest) -> Iterator[str]:
    """Of each environment and span, the statistics that calibration cannot vouch for."""
    places: dict[tuple[str, str, str], list[str]] = {}
    for limit in manifest.limits:
        if limit.undetected_ns is None:
            place = limit.environment, limit.span, limit.date
            places.setdefault(place, []).append(limit.statistic)
    for (environment, span, date), statistics in places.items():
        yield (
            f"{environment}, {span}: {', '.join(statistics)} differed without any delay in the"
            f" calibration of {date}: do not rely on these metrics here; repeat 'tare calibrate'"
        )


def _spans(entries: Sequence[RunEntry], cut: CutSummary) -> dict[int, list[str]]:
    """The spans of each run. A run that failed has the spans of its condition's other runs.

    It would have had them, and is missing in the comparison of each.
    """
    there: dict[int, set[str]] = {}
    for run, span in cut.groups:
        there.setdefault(run, set()).add(span)
    usual: dict[tuple[str, str], set[str]] = {}
    for entry in entries:
        place = entry.environment, entry.condition
        usual.setdefault(place, set()).update(there.get(entry.run, ()))
    spans = {}
    for entry in entries:
        mine = set(there.get(entry.run, ()))
        if not mine or not entry.valid:
            mine |= usual[entry.environment, entry.condition]
        spans[entry.run] = sorted(mine or {REQUEST})
    return spans


def _run(entry: RunEntry, span: str, cut: CutSummary) -> Run:
    group = entry.run, span
    found = cut.groups.get(group)
    requests, errors = (found.requests, found.errors) if found else (0, 0)
    answered = requests - errors
    summaries = cut.summaries(group)
    whole = span == REQUEST
    cpu = entry.cpu.get("service_ns_per_request")
    if whole and cpu is not None:
        summaries["cpu_service"] = cpu
    valid = entry.valid and answered > 0
    gone = entry.valid and found is None
    why = "its requests are not in the result" if gone else "no successful request was recorded"
    reason = entry.reason or (None if valid else why)
    started, duration = entry.started_ns, entry.duration_ns
    return Run(
        environment=entry.environment,
        condition=entry.condition,
        block=entry.block,
        run=entry.run,
        span=span,
        requests=_or(entry.requests, requests) if whole else requests,
        errors=_or(entry.errors, errors) if whole else errors,
        answered=answered,
        started_ns=started,
        ended_ns=started + duration if started is not None and duration is not None else None,
        endpoint=entry.endpoint,
        summaries=summaries,
        quantiles=cut.shape(group),
        valid=valid,
        reason=reason,
        gone=gone,
    )


def _or(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else value
