# SPDX-License-Identifier: Apache-2.0
"""The ten recommendations of Kahlhofer et al. for benchmarks of function hooks, and their answers.

The lab read nine of them. The ninth, more runs where they vary, is answered by the numbers of the
verdicts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tare.report.result.result import Result
from tare.report.result.verdicts import Compared, Verdicts, read_verdicts
from tare.report.sections.sections import Section, Table
from tare.report.typesetting import safe, typeset
from tare.samples.manifest import Answer, Manifest, Recommendation, RunEntry, read_manifest
from tare.samples.model import REQUEST
from tare.verdict.number_text import count, percent

TITLES: Mapping[int, str] = {
    1: "Load generator and service are separate containers of one pod",
    2: "Separate pods are on one node",
    3: "A service mesh is weighed",
    4: "Nothing else runs on the machine",
    5: "Times are taken near to the hook",
    6: "Micro and macro benchmark are declared, and both done",
    7: "The load is like the typical use, which is described",
    8: "No limit of a resource is reached",
    9: "There are enough runs for how much they vary",
    10: "There are several different environments",
}
MORE_RUNS, ENVIRONMENTS = 9, 10
_WORST: Sequence[Answer] = ("broken", "cannot tell", "kept")
SHOWN, LONGEST = 300, 2_000
"""Characters of the evidence on a terminal, and in the report."""

Found = tuple[RunEntry, Recommendation]


@dataclass(frozen=True)
class Row:
    """The answer to one recommendation, in some environments if they differ."""

    number: int
    answer: Answer
    evidence: tuple[str, ...]
    environments: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return TITLES[self.number]

    @property
    def name(self) -> str:
        """Its title and where it has this answer."""
        return ", ".join([self.title, *self.environments])

    def to_json(self) -> dict[str, Any]:
        """With stable keys."""
        return {
            "number": self.number,
            "recommendation": self.title,
            "environments": list(self.environments),
            "answer": self.answer,
            "evidence": list(self.evidence),
        }


def rows(manifest: Manifest, verdicts: Verdicts) -> list[Row]:
    """In their order; none for a result of a Tare that did not read them."""
    compared = [
        comparison for comparison in verdicts.comparisons if comparison.metric == manifest.primary
    ]
    by_environment = compared if manifest.compare == "conditions" else ()
    planned = (
        _of_plan(recommendation, by_environment) for recommendation in manifest.recommendations
    )
    read = [*_of_runs(manifest), *planned]
    if not read:
        return []
    return sorted([*read, _more_runs(compared)], key=lambda row: row.number)


def stored(folder: Path) -> list[Row]:
    """Those of a result folder with verdicts. Raises InputError if it is no result."""
    verdicts = read_verdicts(folder)
    return rows(read_manifest(folder), verdicts) if verdicts is not None else []


def section(result: Result) -> Section:
    """The table of the report."""
    found = rows(result.manifest, result.verdicts)
    return Section(
        anchor="recommendations",
        name="Recommendations",
        gist=_counted(found) if found else "",
        how="The ten recommendations of Kahlhofer et al. for benchmarks of function hooks, and what"
        " was read before, during and after each run. A run that breaks the eighth is invalid. The"
        " others limit what the verdicts are valid for.",
        tables=[
            Table(
                "Recommendations",
                ("no.", "recommendation", "answer", "evidence"),
                [
                    (
                        str(row.number),
                        safe(row.name, LONGEST),
                        row.answer,
                        typeset(safe("; ".join(row.evidence), LONGEST)),
                    )
                    for row in found
                ],
                4,
            )
        ],
        absent="the result has no readings for them",
    )


def short(found: Sequence[Row]) -> list[str]:
    """Lines for a terminal: the numbers of all answers, and why some are not kept."""
    if not found:
        return []
    lines = [f"recommendations: {_counted(found)}"]
    for row in found:
        if row.answer != "kept":
            why = safe("; ".join(row.evidence), SHOWN)
            lines.append(f"  {row.answer}: {row.number}. {row.name}: {why}")
    return lines


def _counted(found: Sequence[Row]) -> str:
    """`8 kept, 2 broken`: a recommendation counts by its worst answer."""
    worst: dict[int, Answer] = {}
    for row in found:
        worst[row.number] = min(row.answer, worst.get(row.number, "kept"), key=_WORST.index)
    answers = [*worst.values()]
    return ", ".join(
        f"{answers.count(word)} {word}" for word in reversed(_WORST) if word in answers
    )


def _of_plan(recommendation: Recommendation, compared: Sequence[Compared]) -> Row:
    more = _consistency(compared) if recommendation.number == ENVIRONMENTS else ()
    return Row(recommendation.number, recommendation.answer, (*recommendation.evidence, *more))


def _of_runs(manifest: Manifest) -> Iterator[Row]:
    """A row for each answer to a recommendation, with the environments that have it."""
    where: dict[int, dict[str, list[Found]]] = {}
    for run in manifest.runs:
        for recommendation in run.recommendations:
            places = where.setdefault(recommendation.number, {})
            is_control = run.environment == manifest.control
            place = manifest.baseline if is_control else run.environment
            places.setdefault(place, []).append((run, recommendation))
    for number, places in where.items():
        worst = {
            place: min((recommendation.answer for _, recommendation in answers), key=_WORST.index)
            for place, answers in places.items()
        }
        for answer in _WORST:
            having = tuple(place for place, word in worst.items() if word == answer)
            if having:
                shown = having if len(places) > 1 else ()
                evidence = _evidence({place: places[place] for place in having}, answer)
                yield Row(number, answer, tuple(evidence), shown)


def _evidence(places: Mapping[str, Sequence[Found]], answer: Answer) -> Iterator[str]:
    """Of the first run with an answer in each environment, and how many runs have it."""
    for place, found in places.items():
        having = [
            (run, recommendation)
            for run, recommendation in found
            if recommendation.answer == answer
        ]
        run, first = having[0]
        parts = [place] if len(places) > 1 else []
        if len(having) < len(found):
            parts.append(f"{len(having)} of {count(len(found), 'run')}, such as run {run.run}")
        elif len(found) > 1:
            parts.append(f"all {count(len(found), 'run')}, such as run {run.run}")
        head = f"{', '.join(parts)}: " if parts else ""
        for line in first.evidence or ("no evidence",):
            yield f"{head}{line}"
            head = ""


def _more_runs(compared: Sequence[Compared]) -> Row:
    """Whether the runs are enough to judge each condition."""
    evidence = tuple(_power(comparison) for comparison in compared) or ("nothing was compared",)
    short_of = not compared or any(map(_too_few, compared))
    return Row(MORE_RUNS, "broken" if short_of else "kept", evidence)


def _too_few(comparison: Compared) -> bool:
    undecided = comparison.verdict in ("inconclusive", "invalid")
    return comparison.mde is None or (
        undecided and comparison.mde > (comparison.threshold or comparison.budget)
    )


def _power(comparison: Compared) -> str:
    have = f"{_name(comparison)}: {count(comparison.runs.condition, 'run')}"
    if comparison.mde is None:
        return f"{have}, too few to know what they detect"
    budget = percent(comparison.threshold or comparison.budget, signed=False)
    found = f"{have} detect {percent(comparison.mde, signed=False)} (to judge: {budget})"
    return f"{found}; {comparison.runs_needed} needed" if comparison.runs_needed else found


def _consistency(compared: Sequence[Compared]) -> Iterator[str]:
    """The verdict of each condition by environment, if there are several."""
    by_condition: dict[tuple[str, str], list[Compared]] = {}
    for comparison in compared:
        by_condition.setdefault((comparison.condition, comparison.span), []).append(comparison)
    for (condition, _), mine in by_condition.items():
        if len(mine) > 1:
            words = ", ".join(
                f"{comparison.environment} {comparison.verdict}" for comparison in mine
            )
            same = len({comparison.verdict for comparison in mine}) == 1
            yield f"{condition}: {'the same verdict' if same else 'different verdicts'}: {words}"


def _name(comparison: Compared) -> str:
    span = "" if comparison.span == REQUEST else comparison.span
    return ", ".join(part for part in (comparison.condition, comparison.environment, span) if part)
