# SPDX-License-Identifier: Apache-2.0
"""A result folder as the report sees it: what was declared, what happened, what was judged."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tare.errors import InputError
from tare.files import replace

if TYPE_CHECKING:
    from tare.samples.model import Experiment, Run

VERDICTS = "verdicts.json"


@dataclass(frozen=True)
class Result:
    """One result folder. Pieces that are missing read as empty: a report is always possible."""

    folder: Path
    manifest: dict[str, Any]
    verdicts: dict[str, Any]
    measured: tuple["Run", ...]
    """Every run with its summaries, as the judge sees it."""

    @property
    def baseline(self) -> str:
        return str(self.manifest.get("baseline", ""))

    @property
    def primary(self) -> str:
        return str(self.manifest.get("primary", "p50"))

    @property
    def budget(self) -> float:
        """Smallest relative difference that matters, as a fraction."""
        return float(self.manifest.get("budget") or 0.0)

    @property
    def environments(self) -> list[str]:
        return list(self.manifest.get("environments") or []) or _unique(self.runs, "environment")

    @property
    def conditions(self) -> list[str]:
        """Names of the conditions, the baseline first."""
        declared = [str(condition["name"]) for condition in self.manifest.get("conditions") or []]
        names = declared or _unique(self.runs, "condition")
        return sorted(names, key=lambda name: name != self.baseline)

    @property
    def runs(self) -> list[dict[str, Any]]:
        return list(self.manifest.get("runs") or [])

    @property
    def places(self) -> dict[int, tuple[str, str]]:
        """Environment and condition of every valid run."""
        return {
            int(run["run"]): (str(run["environment"]), str(run["condition"]))
            for run in self.runs
            if run.get("valid")
        }

    @property
    def comparisons(self) -> list[dict[str, Any]]:
        return list(self.verdicts.get("comparisons") or [])

    @property
    def primary_comparisons(self) -> list[dict[str, Any]]:
        """The comparisons that decide: one a condition, environment and span."""
        return [one for one in self.comparisons if one.get("metric") == self.primary]

    def rank(self, comparison: dict[str, Any]) -> int:
        """The place of a comparison's condition in the plan."""
        names = self.conditions
        name = comparison.get("condition")
        return names.index(name) if name in names else len(names)

    @property
    def ranked(self) -> list[dict[str, Any]]:
        """All comparisons: those that decide first, then by condition as in the plan."""
        return sorted(
            self.comparisons, key=lambda one: (one.get("metric") != self.primary, self.rank(one))
        )

    @property
    def warnings(self) -> list[str]:
        """Every warning of the lab and of the judge, each once."""
        both = [*(self.manifest.get("warnings") or []), *(self.verdicts.get("warnings") or [])]
        return list(dict.fromkeys(str(warning) for warning in both))


def read(folder: Path) -> Result:
    """Reads a result folder; judges it first where nobody has yet.

    Raises InputError where the folder is not a result.
    """
    from tare.samples import read_result
    from tare.samples.manifest import read_manifest

    experiment = read_result(folder)
    manifest = read_manifest(folder)
    path = folder / VERDICTS
    verdicts = _verdicts(path) if path.exists() else _judge(experiment, path)
    return Result(folder, manifest, verdicts, experiment.runs)


def _judge(experiment: "Experiment", path: Path) -> dict[str, Any]:
    from tare.verdict import judge

    try:
        verdicts = judge(experiment).to_json()
    except InputError as error:  # a result without any valid run still has a report
        return {"comparisons": [], "warnings": [*experiment.warnings, f"not judged: {error}"]}
    replace(path, json.dumps(verdicts, indent=2) + "\n")
    return verdicts


def _verdicts(path: Path) -> dict[str, Any]:
    try:
        verdicts = json.loads(path.read_text(encoding="utf-8"))
        verdicts["comparisons"], verdicts["warnings"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path}: not the verdicts of a result ({error!r}); remove it to have it judged anew"
        ) from None
    return dict(verdicts)


def _unique(runs: list[dict[str, Any]], key: str) -> list[str]:
    return list(dict.fromkeys(str(run[key]) for run in runs if run.get(key) is not None))
