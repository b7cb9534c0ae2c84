# SPDX-License-Identifier: Apache-2.0
"""The table of the ten recommendations: by number, by environment, and with the verdicts' power."""

from typing import Any

import pytest

from tare.report.result.verdicts import Verdicts
from tare.report.sections.recommendations import Row, rows, short
from tare.samples.manifest import Manifest


def manifest(*runs: tuple[str, int, str], plan: tuple[int, str] | None = None) -> Manifest:
    """Of runs with one answer each: environment, number, answer."""
    entries = [
        {
            "run": run,
            "block": run,
            "environment": environment,
            "condition": "hook",
            "valid": True,
            "recommendations": [
                {"number": number, "answer": answer, "evidence": [f"read of run {run}"]}
            ],
        }
        for run, (environment, number, answer) in enumerate(runs, 1)
    ]
    of_plan = [] if plan is None else [{"number": plan[0], "answer": plan[1], "evidence": ["keys"]}]
    return Manifest.model_validate(
        {"baseline": "plain", "budget": 0.03, "runs": entries, "recommendations": of_plan}
    )


def compared(environment: str = "host", **more: Any) -> dict[str, Any]:
    return {
        "environment": environment,
        "condition": "hook",
        "metric": "p50",
        "verdict": "unchanged",
        "budget": 0.03,
        "effect": {},
        "interval": {"low": None, "high": None},
        "runs": {"baseline": 8, "condition": 8},
        **more,
    }


def verdicts(*comparisons: dict[str, Any]) -> Verdicts:
    return Verdicts.model_validate({"comparisons": comparisons, "warnings": ()})


def test_a_result_without_readings_has_no_table() -> None:
    assert rows(manifest(), verdicts(compared(mde=0.01))) == []


def test_a_run_that_breaks_a_recommendation_counts_for_all() -> None:
    read = manifest(("host", 4, "kept"), ("host", 4, "broken"), ("host", 4, "kept"))
    found, _ = rows(read, verdicts(compared(mde=0.01)))
    assert found == Row(4, "broken", ("1 of 3 runs, such as run 2: read of run 2",))
    assert short([found]) == [
        "recommendations: 1 broken",
        "  broken: 4. Nothing else runs on the machine: 1 of 3 runs, such as run 2: read of run 2",
    ]


def test_environments_with_different_answers_have_rows_of_their_own() -> None:
    read = manifest(("host", 1, "broken"), ("container", 1, "kept"), ("pod", 1, "kept"))
    broken, kept, _ = rows(read, verdicts(compared(mde=0.01)))
    assert broken == Row(1, "broken", ("read of run 1",), ("host",))
    assert kept.environments == ("container", "pod")
    assert kept.evidence == ("container: read of run 2", "pod: read of run 3")
    assert short([broken, kept])[0] == "recommendations: 1 broken"


@pytest.mark.parametrize(
    ("comparison", "answer", "evidence"),
    [
        (compared(mde=0.01), "kept", "hook, host: 8 runs detect 1.0 % (to judge: 3.0 %)"),
        (compared(mde=0.09, verdict="slower"), "kept", "8 runs detect 9.0 %"),
        (
            compared(mde=0.09, verdict="inconclusive", runs_needed=40),
            "broken",
            "8 runs detect 9.0 % (to judge: 3.0 %); 40 needed",
        ),
        (compared(verdict="inconclusive"), "broken", "too few to know what they detect"),
    ],
)
def test_runs_are_enough_if_they_detect_the_budget_or_a_difference(
    comparison: dict[str, Any], answer: str, evidence: str
) -> None:
    _, found = rows(manifest(("host", 8, "kept")), verdicts(comparison))
    assert (found.number, found.answer) == (9, answer)
    assert evidence in found.evidence[0]


def test_verdicts_of_several_environments_are_compared() -> None:
    both = verdicts(compared(mde=0.01), compared("pod", mde=0.01, verdict="slower"))
    _, found = rows(manifest(plan=(10, "kept")), both)
    assert found.evidence == ("keys", "hook: different verdicts: host unchanged, pod slower")
