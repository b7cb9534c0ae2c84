# SPDX-License-Identifier: Apache-2.0
"""Two results against each other: the same conditions, measured by experiments apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tare.errors import InputError
from tare.samples import Experiment, Run, read_result
from tare.samples.manifest import read_manifest
from tare.verdict.differences import differences, with_service
from tare.verdict.judge import judge_together
from tare.verdict.judgement import Judgement

OLD, NEW = "old", "new"


def judge_folders(
    old: Path,
    new: Path,
    wanted: Sequence[str] = (),
    budget: float | None = None,
    primary: str | None = None,
) -> Judgement:
    """Compares each condition of `new` with the one of the same name in `old`, runs unpaired.

    They are called NAME@old and NAME@new, which no condition of a plan can be called. All that
    both have are compared, or those that are `wanted`. Budget (a fraction), primary metric and
    alpha are those of `old`, as they stood before there was anything to like better. Raises
    InputError where a folder is no result, or lacks a wanted condition.
    """
    sides = {OLD: Path(old), NEW: Path(new)}
    if sides[OLD].resolve() == sides[NEW].resolve():
        raise InputError(f"{new}: named twice; give the folders of two results")
    results = {side: read_result(folder) for side, folder in sides.items()}
    names = _names(results, sides, wanted)
    was, now = (with_service(read_manifest(folder), folder) for folder in sides.values())
    results[OLD] = replace(
        results[OLD],
        budget=results[OLD].budget if budget is None else budget,
        primary=results[OLD].primary if primary is None else primary,
    )
    experiments = {name: _experiment(results, name) for name in names}
    judgement = judge_together(experiments if len(names) > 1 else {"": experiments[names[0]]})
    warnings = [
        f"two experiments, {old} (old) and {new} (new): their runs are not paired, and all that"
        " changed between them counts as an effect",
        *differences(was, now, names),
        *_alone(results, names, wanted),
        *(f"{side}: {line}" for side, result in results.items() for line in result.warnings),
        *judgement.warnings,
    ]
    return replace(judgement, warnings=tuple(warnings))


def _names(
    results: dict[str, Experiment], sides: dict[str, Path], wanted: Sequence[str]
) -> list[str]:
    there = {side: _conditions(result) for side, result in results.items()}
    for name in wanted:
        for side, names in there.items():
            if name not in names:
                raise InputError(
                    f"{sides[side]}: no condition '{name}'; it has {', '.join(names) or 'none'}"
                )
    both = [name for name in there[OLD] if name in there[NEW]]
    if not both:
        raise InputError(
            f"{sides[NEW]}: has {', '.join(there[NEW]) or 'no runs'}, and {sides[OLD]} has"
            f" {', '.join(there[OLD]) or 'no runs'}: no condition in both, nothing to compare"
        )
    return list(dict.fromkeys(wanted)) or both


def _conditions(result: Experiment) -> list[str]:
    return list(dict.fromkeys(run.condition for run in result.runs))


def _experiment(results: dict[str, Experiment], name: str) -> Experiment:
    """One condition of both results as an experiment of two."""
    runs: list[Run] = [
        replace(run, condition=f"{name}@{side}")
        for side, result in results.items()
        for run in result.runs
        if run.condition == name
    ]
    return replace(
        results[OLD], runs=tuple(runs), baseline=f"{name}@{OLD}", paired=False, warnings=()
    )


def _alone(
    results: dict[str, Experiment], names: Sequence[str], wanted: Sequence[str]
) -> list[str]:
    """Conditions of one side that nothing stands against."""
    if wanted:
        return []
    return [
        f"only {side} has '{name}': not judged"
        for side, result in results.items()
        for name in _conditions(result)
        if name not in names
    ]
