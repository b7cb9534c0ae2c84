# SPDX-License-Identifier: Apache-2.0
"""Stated units are believed; where none is stated, a step between units is a warning."""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest

from tare.samples import ImportOptions, read_files
from tare.samples.formats.import_options import NOTHING
from tare.stats.arrays import Array
from tare.verdict import Judgement, judge

RUNS = 8
Change = Callable[[Array], Array]


def latencies(seed: int) -> Array:
    """400 requests of about 2; runs scatter by 0.5 %."""
    generator = np.random.default_rng(seed)
    return 2 * generator.normal(1, 0.005) * generator.lognormal(0, 0.2, 400)


def judged(
    folder: Path,
    change: Change = lambda values: values,
    *,
    headers: Mapping[str, str] | None = None,
    options: ImportOptions = NOTHING,
    changed_runs: int = RUNS,
) -> Judgement:
    """8 runs a side, all of one level; `change` is made to the first `changed_runs` of `new`."""
    paths: dict[str, list[Path]] = {"old": [], "new": []}
    for place, name in enumerate(paths):
        for run in range(RUNS):
            values = latencies(100 * place + run)
            if name == "new" and run < changed_runs:
                values = change(values)
            path = folder / f"{name}{run}.csv"
            rows = "".join(f"{value:.9f}\n" for value in values)
            path.write_text(f"{(headers or {}).get(name, 'latency')}\n{rows}")
            paths[name].append(path)
    return judge(read_files(paths, "old", options=options))


def verdict(judgement: Judgement) -> str:
    (found,) = (comparison for comparison in judgement.comparisons if comparison.metric == "p50")
    return found.verdict


def suspicions(judgement: Judgement) -> list[str]:
    return [line for line in judgement.warnings if "no unit is stated" in line]


def times(factor: float) -> Change:
    return lambda values: factor * values


def in_parts(factor: float, share: float) -> Change:
    def change(values: Array) -> Array:
        changed = values.copy()
        changed[: round(share * values.size)] *= factor
        return changed

    return change


@pytest.mark.parametrize("factor", [600, 1_000, 1_900, 1e6, 1.05e-3])
def test_a_step_between_conditions_has_a_verdict_and_a_warning(
    tmp_path: Path, factor: float
) -> None:
    judgement = judged(tmp_path, times(factor))
    assert verdict(judgement) == ("slower" if factor > 1 else "faster")
    step = "1,000,000" if factor == 1e6 else "1,000"
    (line,) = suspicions(judgement)
    assert f"ms was assumed, and 'new' and 'old' are about {step} times apart" in line


@pytest.mark.parametrize(
    ("headers", "options"),
    [
        ({"old": "latency_ms", "new": "latency_ms"}, ImportOptions()),
        ({}, ImportOptions(unit="ms")),
        ({}, ImportOptions(units={"old": "ms", "new": "ms"})),
        ({"old": "took_us", "new": "took_us"}, ImportOptions({"duration": "took_us"})),
    ],
)
def test_a_stated_unit_is_believed(
    tmp_path: Path, headers: Mapping[str, str], options: ImportOptions
) -> None:
    judgement = judged(tmp_path, times(1_000), headers=headers, options=options)
    assert verdict(judgement) == "slower"
    assert not suspicions(judgement)


@pytest.mark.parametrize("unit", [None, "ms"])
def test_a_cache_with_a_few_fast_hits_is_judged(tmp_path: Path, unit: str | None) -> None:
    hits = in_parts(1e-3, 0.05)
    judgement = judged(
        tmp_path, lambda values: hits(1.3 * values), options=ImportOptions(unit=unit)
    )
    assert verdict(judgement) == "slower"
    assert not suspicions(judgement)


@pytest.mark.exhaustive
@pytest.mark.parametrize("share", [0.2, 0.5, 0.7])
def test_parts_of_a_run_a_step_apart_are_a_warning(tmp_path: Path, share: float) -> None:
    (line,) = suspicions(judged(tmp_path, in_parts(1_000, share)))
    assert "p10 and p90 of a run of 'new' are about 1,000 times apart" in line
    assert not suspicions(
        judged(tmp_path, in_parts(1_000, share), options=ImportOptions(unit="ms"))
    )


def test_runs_of_a_condition_a_step_apart_are_a_warning(tmp_path: Path) -> None:
    (line,) = suspicions(judged(tmp_path, times(1_000), changed_runs=1))
    assert "runs of 'new' are about 1,000 times apart" in line


@pytest.mark.parametrize("factor", [1.3, 100])
def test_other_effects_are_no_suspicion(tmp_path: Path, factor: float) -> None:
    judgement = judged(tmp_path, times(factor))
    assert verdict(judgement) == "slower"
    assert not suspicions(judgement)


def test_each_condition_can_have_its_own_unit(tmp_path: Path) -> None:
    judgement = judged(
        tmp_path, times(1_300), options=ImportOptions(unit="ms", units={"new": "us"})
    )
    (found,) = (comparison for comparison in judgement.comparisons if comparison.metric == "p50")
    assert found.relative == pytest.approx(0.3, abs=0.02)


def test_one_stated_unit_leaves_the_other_side_in_doubt(tmp_path: Path) -> None:
    stated = {"old": "latency_ms"}
    (line,) = suspicions(judged(tmp_path, times(1_000), headers=stated))
    assert "'new' and 'old' are about 1,000 times apart" in line
    # The parts of the side whose unit is stated are believed.
    assert not suspicions(judged(tmp_path, in_parts(1_000, 0.3), headers={"new": "latency_ms"}))
