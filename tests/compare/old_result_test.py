# SPDX-License-Identifier: Apache-2.0
"""A result that an older version wrote is opened, compared and reported."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.in_process import tare

from tare.report.result.verdicts import read_verdicts
from tare.samples.manifest import read_manifest

STORED = Path(__file__).parents[1] / "data" / "old-result" / "result"


@pytest.fixture
def result(tmp_path: Path) -> Path:
    return Path(shutil.copytree(STORED, tmp_path / "result"))


def without_nulls(value: Any) -> Any:
    """Null means the same as no key in a table of the manifest."""
    if isinstance(value, dict):
        return {key: without_nulls(part) for key, part in value.items() if part is not None}
    return [*map(without_nulls, value)] if isinstance(value, list) else value


def within(old: Any, new: Any) -> bool:
    """Whether all that is in `old` is in `new`, where tables may have more keys."""
    if isinstance(old, dict):
        return old.keys() <= new.keys() and all(within(old[key], new[key]) for key in old)
    if isinstance(old, list):
        return len(old) == len(new) and all(map(within, old, new))
    return bool(old == new)


def test_every_value_of_its_manifest_is_kept(result: Path) -> None:
    written = json.loads((result / "manifest.json").read_text())
    manifest = read_manifest(result)
    assert within(without_nulls(written), manifest.model_dump())
    assert (manifest.compare, manifest.published) == ("conditions", "")


def test_its_verdicts_are_read_without_the_keys_that_came_later(result: Path) -> None:
    verdicts = read_verdicts(result)
    assert verdicts is not None
    assert (verdicts.judged_by, verdicts.smoke) == ("", True)
    first = verdicts.comparisons[0]
    assert (first.condition, first.metric, first.verdict) == ("variable", "p50", "inconclusive")
    assert first.effect.relative == pytest.approx(1.5, rel=0.01)
    assert [control.alarm for control in verdicts.controls] == [False]


def numbers(answer: dict[str, Any]) -> dict[tuple[str, str, str], float | None]:
    """The numbers of each metric, by their keys in the JSON of a comparison."""
    return {
        (comparison["metric"], part, key): number
        for comparison in answer["comparisons"]
        for part in ("values", "effect", "runs")
        for key, number in comparison[part].items()
    }


def test_it_is_compared_with_the_same_numbers_as_then(result: Path) -> None:
    done = tare("compare", result, "--json")
    assert done.returncode == 0, done.stderr
    then = json.loads((STORED / "verdicts.json").read_text())
    assert numbers(json.loads(done.stdout)) == pytest.approx(numbers(then))


def test_it_is_reported_and_judged_again(result: Path) -> None:
    done = tare("report", result)
    assert done.returncode == 0, done.stderr
    assert "judged again" in done.stderr
    assert "variable" in (result / "report.html").read_text()
    verdicts = read_verdicts(result)
    assert verdicts is not None
    assert verdicts.judged_by.startswith("tare ")
