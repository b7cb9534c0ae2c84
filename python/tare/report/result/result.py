# SPDX-License-Identifier: Apache-2.0
"""A result folder as the report sees it: what was declared, what happened, what was judged."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tare.errors import InputError
from tare.report.result.verdicts import Compared, Verdicts, read_verdicts, this_tare, write_verdicts
from tare.samples.manifest import Manifest, RunEntry, read_manifest
from tare.samples.model import REQUEST
from tare.samples.notes import of_lab

if TYPE_CHECKING:
    from tare.samples.describe.warm_up_cuts import CutSummaries
    from tare.samples.model import Experiment, Run
    from tare.verdict.judgement import Control


@dataclass(frozen=True)
class Result:
    """One result folder. Pieces that are missing read as empty: a report is always possible."""

    folder: Path
    manifest: Manifest
    verdicts: Verdicts
    measured: tuple["Run", ...]
    """Every run once, the control's too, as the judge sees it: its whole requests, where it has
    spans beside them."""
    experiment: "Experiment"
    """As the judge sees it: with all spans, and the control."""
    looks: "CutSummaries"

    @property
    def baseline(self) -> str:
        return self.manifest.baseline

    @property
    def primary(self) -> str:
        return self.manifest.primary

    @property
    def budget(self) -> float:
        """Smallest relative difference that matters, as a fraction."""
        return self.manifest.budget

    @cached_property
    def environments(self) -> list[str]:
        declared = self._as_compared.environments
        return declared or _unique(run.environment for run in self.runs)

    @cached_property
    def conditions(self) -> list[str]:
        """Names of the conditions, the baseline first."""
        declared = [condition.name for condition in self._as_compared.conditions]
        names = declared or _unique(run.condition for run in self.runs)
        names = [name for name in names if name != self.experiment.control]
        return sorted(names, key=lambda name: name != self.baseline)

    @property
    def runs(self) -> list[RunEntry]:
        """All that the manifest names, the control's too."""
        return self._as_compared.runs

    @cached_property
    def _as_compared(self) -> Manifest:
        return self.manifest.as_compared()

    @cached_property
    def span(self) -> str:
        """The span that figures of requests show."""
        spans = {run.span for run in self.measured}
        return REQUEST if REQUEST in spans else max(spans, default=REQUEST)

    @property
    def spans(self) -> list[str]:
        """The spans that were compared."""
        return _unique(comparison.span for comparison in self.comparisons)

    @cached_property
    def places(self) -> dict[int, tuple[str, str]]:
        """Environment and condition of every valid run but the control's."""
        return {
            run.run: (run.environment, run.condition)
            for run in self.runs
            if run.valid and run.condition != self.experiment.control
        }

    @property
    def comparisons(self) -> Sequence[Compared]:
        return self.verdicts.comparisons

    @property
    def primary_comparisons(self) -> list[Compared]:
        """The comparisons that decide: one a condition, environment and span."""
        return [comparison for comparison in self.comparisons if comparison.metric == self.primary]

    @property
    def controls(self) -> "Sequence[Control]":
        """What the hidden second baselines came to."""
        return self.verdicts.controls

    def threshold(self, comparison: Compared) -> float:
        """The smallest difference that was judged, as a fraction: the budget, or more."""
        return comparison.threshold or self.budget

    def called(self, condition: str) -> str:
        """The name of a condition in the report; the control has none of its own."""
        return "control" if condition == self.experiment.control else condition

    def named(self, environment: str, span: str) -> str:
        """A place by that of it of which there are several."""
        parts = (environment, len(self.environments)), (span, len(self.spans))
        return ", ".join(name for name, several in parts if several > 1)

    def rank(self, comparison: Compared) -> int:
        """The place of a comparison's condition in the plan."""
        names = self.conditions
        name = comparison.condition
        return names.index(name) if name in names else len(names)

    @property
    def ranked(self) -> list[Compared]:
        """All comparisons: those that decide first, then by condition as in the plan."""
        return sorted(
            self.comparisons,
            key=lambda comparison: (comparison.metric != self.primary, self.rank(comparison)),
        )

    @property
    def warnings(self) -> list[str]:
        """Every warning of the lab and of the judge, each once."""
        return _unique([*of_lab(self.manifest.warnings), *self.verdicts.warnings])

    @property
    def notes(self) -> Sequence[str]:
        """What the judge notes and asks nothing for."""
        return self.verdicts.notes


def read(
    folder: Path, known: "tuple[Experiment, CutSummaries] | None" = None, within: int | None = None
) -> Result:
    """Reads a result folder, as far as it is not `known`; judges it first if this Tare has not.

    `within` is the descriptor of the folder: its owner may put another folder in its place. A run
    is valid where its samples and the judge say so too. Raises InputError where the folder is no
    result.
    """
    from tare.samples.read.result_folders import read_with_looks
    from tare.verdict import without_bad_runs

    manifest = read_manifest(folder)
    experiment, looks = known or read_with_looks(folder)
    experiment = without_bad_runs(experiment)
    verdicts = read_verdicts(folder)
    if verdicts is not None and verdicts.judged_by != this_tare():
        verdicts = _of_another_tare(verdicts, experiment)
    verdicts = verdicts or _judge(experiment, folder, within)
    by_rank = sorted(experiment.runs, key=lambda run: run.span == REQUEST)
    whole = {run.run: run for run in by_rank}
    manifest.runs = [
        entry.model_copy(update={"valid": run.valid, "reason": run.reason})
        for entry in manifest.runs
        if (run := whole.get(entry.run))
    ]
    measured = tuple(whole[number] for number in sorted(whole))
    return Result(folder, manifest, verdicts, measured, experiment, looks)


def _of_another_tare(verdicts: Verdicts, experiment: "Experiment") -> Verdicts | None:
    """None where this version can judge again; without all requests, the old verdicts remain."""
    if not any(run.gone for run in experiment.runs):
        return None
    judge = verdicts.judged_by or "an older version of tare"
    warning = f"the verdicts are from {judge}: without all requests they cannot be judged again"
    return verdicts.model_copy(update={"warnings": (*verdicts.warnings, warning)})


def _judge(experiment: "Experiment", folder: Path, within: int | None) -> Verdicts:
    from tare.verdict import Judgement, judge

    try:
        judgement = judge(experiment)
    except InputError as error:  # a result with nothing to compare still has a report
        judgement = Judgement((), experiment.warnings).warned(f"not judged: {error}")
    write_verdicts(folder, judgement, within)
    found = read_verdicts(folder)
    assert found is not None
    return found


def _unique(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))
