# SPDX-License-Identifier: Apache-2.0
"""A result folder as the report sees it: what was declared, what happened, what was judged."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tare.errors import InputError
from tare.files import replace
from tare.samples.model import REQUEST
from tare.samples.notes import of_lab

if TYPE_CHECKING:
    from tare.samples.looks import Looks
    from tare.samples.model import Experiment, Run
    from tare.verdict.judgement import Control, Shape

VERDICTS = "verdicts.json"


@dataclass(frozen=True)
class Result:
    """One result folder. Pieces that are missing read as empty: a report is always possible."""

    folder: Path
    manifest: dict[str, Any]
    verdicts: dict[str, Any]
    measured: tuple["Run", ...]
    """Every run once, the control's too, as the judge sees it: its whole requests, where it has
    spans beside them."""
    experiment: "Experiment"
    """As the judge sees it: with all spans, and the control."""
    looks: "Looks"

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
        names = [name for name in names if name != self.experiment.control]
        return sorted(names, key=lambda name: name != self.baseline)

    @property
    def runs(self) -> list[dict[str, Any]]:
        """All that the manifest names, the control's too."""
        return list(self.manifest.get("runs") or [])

    @property
    def span(self) -> str:
        """The span that figures of requests show."""
        spans = {run.span for run in self.measured}
        return REQUEST if REQUEST in spans else max(spans, default=REQUEST)

    @property
    def spans(self) -> list[str]:
        """The spans that were compared."""
        return _unique(self.comparisons, "span")

    @property
    def places(self) -> dict[int, tuple[str, str]]:
        """Environment and condition of every valid run but the control's."""
        return {
            int(run["run"]): (str(run["environment"]), str(run["condition"]))
            for run in self.runs
            if run.get("valid") and run["condition"] != self.experiment.control
        }

    @property
    def comparisons(self) -> list[dict[str, Any]]:
        return list(self.verdicts.get("comparisons") or [])

    @property
    def primary_comparisons(self) -> list[dict[str, Any]]:
        """The comparisons that decide: one a condition, environment and span."""
        return [one for one in self.comparisons if one.get("metric") == self.primary]

    @property
    def controls(self) -> "list[Control]":
        """What the hidden second baselines came to."""
        return list(self.verdicts.get("controls") or [])

    def threshold(self, comparison: dict[str, Any]) -> float:
        """The smallest difference that was judged, as a fraction: the budget, or more."""
        return float(comparison.get("threshold") or self.budget)

    def called(self, condition: str) -> str:
        """A condition, or the control, which nobody declared, as a person is told of it."""
        return "control" if condition == self.experiment.control else condition

    def named(self, environment: str, span: str) -> str:
        """A place by that of it of which there are several."""
        parts = (environment, len(self.environments)), (span, len(self.spans))
        return ", ".join(name for name, several in parts if several > 1)

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
        of_manifest = of_lab(map(str, self.manifest.get("warnings") or []))
        both = [*of_manifest, *(self.verdicts.get("warnings") or [])]
        return list(dict.fromkeys(str(warning) for warning in both))

    @property
    def notes(self) -> list[str]:
        """What the judge notes and asks nothing for."""
        return list(self.verdicts.get("notes") or [])


def read(folder: Path, known: "tuple[Experiment, Looks] | None" = None) -> Result:
    """Reads a result folder, as far as it is not `known`; judges it first where nobody has yet.

    A run is valid where its samples and the judge say so too. Raises InputError where the folder is
    no result.
    """
    from tare.samples.manifest import read_manifest
    from tare.samples.measured import read_with_looks
    from tare.verdict import without_bad_runs

    manifest = read_manifest(folder)
    experiment, looks = known or read_with_looks(folder)
    experiment = without_bad_runs(experiment)
    path = folder / VERDICTS
    verdicts = _verdicts(path) if path.exists() else _judge(experiment, path)
    by_rank = sorted(experiment.runs, key=lambda run: run.span == REQUEST)
    whole = {run.run: run for run in by_rank}
    manifest["runs"] = [
        entry | {"valid": whole[entry["run"]].valid, "reason": whole[entry["run"]].reason}
        for entry in manifest["runs"]
        if entry["run"] in whole
    ]
    measured = tuple(whole[number] for number in sorted(whole))
    return Result(folder, manifest, verdicts, measured, experiment, looks)


def _judge(experiment: "Experiment", path: Path) -> dict[str, Any]:
    from tare.verdict import Judgement, judge

    try:
        verdicts = judge(experiment).to_json()
    except InputError as error:  # a result with nothing to compare still has a report
        judgement = Judgement((), experiment.warnings).warned(f"not judged: {error}")
        verdicts = judgement.to_json()
    replace(path, json.dumps(verdicts, indent=2) + "\n")
    return _typed(verdicts)


def _verdicts(path: Path) -> dict[str, Any]:
    try:
        return _typed(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path}: not the verdicts of a result ({error!r}); remove it to have it judged anew"
        ) from None


def _typed(verdicts: dict[str, Any]) -> dict[str, Any]:
    """Verdicts as `tare compare --json` prints them. Else KeyError, TypeError, ValueError."""
    from tare.verdict.judgement import Control

    return {
        "comparisons": [_comparison(one) for one in verdicts["comparisons"]],
        "controls": [Control(**one) for one in verdicts.get("controls", ())],
        "warnings": [str(one) for one in verdicts["warnings"]],
        "notes": [str(one) for one in verdicts.get("notes", ())],
    }


def _comparison(entry: dict[str, Any]) -> dict[str, Any]:
    from tare.verdict.judgement import Cut, EffectSizes

    typed: dict[str, Any] = {key: dict(entry[key]) for key in ("effect", "interval", "runs")}
    typed |= {key: str(entry[key]) for key in ("condition", "metric")}
    typed["shape"] = _shape(entry.get("shape"))
    sizes = entry.get("effect_sizes")
    typed["effect_sizes"] = None if sizes is None else EffectSizes(**sizes)
    typed["warm_up_cuts"] = [Cut(**cut) for cut in entry.get("warm_up_cuts") or ()]
    return {**entry, **typed}


def _shape(entry: dict[str, Any] | None) -> "Shape | None":
    from tare.verdict.judgement import Apart, Page, Quantile, Shape

    if entry is None:
        return None
    shift = tuple(Quantile(**one) for one in entry["shift"])
    apart = tuple(Apart(**one) for one in entry.get("apart") or ())
    pages = tuple(Page(**one) for one in entry.get("pages") or ())
    return Shape(**{**entry, "shift": shift, "apart": apart, "pages": pages})


def _unique(runs: list[dict[str, Any]], key: str) -> list[str]:
    return list(dict.fromkeys(str(run[key]) for run in runs if run.get(key) is not None))
