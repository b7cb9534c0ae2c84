# SPDX-License-Identifier: Apache-2.0
"""Two results against each other: the same conditions, measured by experiments apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tare.errors import InputError
from tare.samples import Experiment, read_both
from tare.samples.manifest import Manifest, read_manifest
from tare.samples.read.result_folders import NEW, OLD
from tare.verdict.evidence.differences import differences, plan_tables
from tare.verdict.judge import judge_together
from tare.verdict.judgement import Control, Judgement
from tare.verdict.number_text import percent
from tare.verdict.rules.control import controls
from tare.verdict.rules.failures import without_bad_runs
from tare.verdict.rules.warnings import unguarded


def judge_folders(
    old: Path,
    new: Path,
    wanted: Sequence[str] = (),
    budget: float | None = None,
    primary: str | None = None,
) -> Judgement:
    """Compares each condition of `new` with the condition of the same name in `old`, runs unpaired.

    They are called NAME@old and NAME@new. All that both have are compared, or those that are
    `wanted`. Budget (a fraction), primary metric and alpha are those of `old` unless given. Raises
    InputError where a folder is no result, or lacks a wanted condition.
    """
    sides = {OLD: Path(old), NEW: Path(new)}
    if sides[OLD].resolve() == sides[NEW].resolve():
        raise InputError(f"{new}: is given twice; give two different result folders")
    both = read_both(*sides.values())
    manifests = {side: read_manifest(folder) for side, folder in sides.items()}
    there = {side: _conditions(both, side, manifests[side]) for side in sides}
    names = _names(there, sides, wanted)
    asked = replace(both.asked(budget, primary), warnings=())
    experiments = {name: _of(asked, name) for name in names}
    guarded = {side: _guarded(both, side, manifests[side]) for side in sides}
    outcomes = {side: controls(experiment) for side, experiment in guarded.items()}
    judgement = judge_together(
        experiments if len(names) > 1 else {"": experiments[names[0]]},
        [control for found in outcomes.values() for control in found],
    )
    lines = [
        f"two experiments, {old} (old) and {new} (new): their runs are not paired, and every change"
        " between them counts as an effect",
        *differences(manifests[OLD], manifests[NEW], names, *map(plan_tables, sides.values())),
        *(line for side, found in outcomes.items() for line in _alarms(side, found)),
        *(
            f"{side}: {line}"
            for side, experiment in guarded.items()
            for line in unguarded(experiment)
        ),
        *_alone(there, names, wanted),
        *both.warnings,
        *judgement.lines,
    ]
    return replace(judgement, lines=tuple(lines))


def _names(
    there: Mapping[str, list[str]], sides: Mapping[str, Path], wanted: Sequence[str]
) -> list[str]:
    for name in wanted:
        for side, names in there.items():
            if name not in names:
                raise InputError(
                    f"{sides[side]}: no condition '{name}'; it has {', '.join(names) or 'none'}"
                )
    common = [name for name in there[OLD] if name in there[NEW]]
    if not common:
        raise InputError(
            f"{sides[NEW]}: has {', '.join(there[NEW]) or 'no runs'}, and {sides[OLD]} has"
            f" {', '.join(there[OLD]) or 'no runs'}: no common condition to compare"
        )
    return list(dict.fromkeys(wanted)) or common


def _conditions(both: Experiment, side: str, manifest: Manifest) -> list[str]:
    """Those of one side that its author declared."""
    names = dict.fromkeys(run.condition for run in both.runs)
    of_side = [name.removesuffix(f"@{side}") for name in names if name.endswith(f"@{side}")]
    return [name for name in of_side if name != manifest.control]


def _of(both: Experiment, name: str) -> Experiment:
    """One condition of both results as an experiment of two."""
    conditions = {f"{name}@{side}" for side in (OLD, NEW)}
    return replace(
        both,
        runs=tuple(run for run in both.runs if run.condition in conditions),
        baseline=f"{name}@{OLD}",
        cuts={cut: _of(other, name) for cut, other in both.cuts.items()},
    )


def _guarded(both: Experiment, side: str, manifest: Manifest) -> Experiment:
    """A result's baseline and its control, by themselves."""
    control = manifest.control
    names = [f"{name}@{side}" for name in (manifest.baseline, control) if name is not None]
    return without_bad_runs(
        replace(
            both,
            runs=tuple(run for run in both.runs if run.condition in names),
            paired=True,
            baseline=names[0],
            control=None if control is None else names[1],
            cuts={},
        )
    )


def _alarms(side: str, found: Sequence[Control]) -> list[str]:
    """That a result's own control differs from its baseline."""
    return [
        f"{side}: the baseline differs from itself by {percent(control.relative)} in"
        f" {control.metric} (its control): that experiment was disturbed"
        for control in found
        if control.alarm
    ]


def _alone(
    there: Mapping[str, list[str]], names: Sequence[str], wanted: Sequence[str]
) -> list[str]:
    """Conditions of one side that nothing stands against."""
    if wanted:
        return []
    return [
        f"only {side} has '{name}': no verdict for it"
        for side, conditions in there.items()
        for name in conditions
        if name not in names
    ]
