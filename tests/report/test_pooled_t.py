# SPDX-License-Identifier: Apache-2.0
"""The published t-test in the report, with the published numbers where a plan repeats them."""

import json
import tomllib
from pathlib import Path

import numpy as np
import pytest
from tests.report.page import written
from tests.report.synthetic import Synthetic
from tests.report.test_evidence import rows

from tare.plan.schema.plan import Plan
from tare.published.numbers import read_published
from tare.report.page.page import write
from tare.report.typesetting import duration
from tare.samples.read.latencies import latencies
from tare.stats.pooled_t import pooled_t

pytestmark = pytest.mark.usefixtures("one_layout")
PLANS = Path(__file__).parents[2] / "plans"
SECTION = "Pooled t-test"


def test_it_is_the_test_of_all_requests_beside_the_verdict(tmp_path: Path) -> None:
    folder = tmp_path / "result"
    made_up = Synthetic(effects={"plain": 0.0, "hook": 0.3}, requests=500, blocks=8)
    written(made_up, folder)
    runs = latencies(folder)["host", "request"]
    plain, hook = (
        np.concatenate([run for (condition, _), run in runs.items() if condition == name])
        for name in made_up.effects
    )
    found = pooled_t(plain, hook)
    assert found is not None
    [row] = rows(folder, SECTION)
    assert row[:2] == ["hook", "slower"]
    assert row[3:5] == [f"{found.t:.1f}", "\\< 0.001"]
    told = (found.pooled_spread, found.mean_difference, found.median_difference)
    signs = (False, True, True)
    assert row[5:8] == [
        duration(of, signed=sign).replace("\u00a0", " ")
        for of, sign in zip(told, signs, strict=True)
    ]
    assert "".join(row[8].split()) == str(plain.size + hook.size)


def test_published_numbers_stand_beside_those_of_a_result(tmp_path: Path) -> None:
    folder = tmp_path / "result"
    effects = {"plain": 0.0, "hook": 0.3}
    made_up = Synthetic(effects=effects, environments=("host", "pod"), requests=200, blocks=2)
    made_up.write(folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"published": "kahlhofer-2023"}))
    write(folder)
    host, pod = (row[-1] for row in rows(folder, SECTION))
    assert host == "–"
    assert pod.startswith("Kind: t 22.4, ")
    assert "; pod on EKS: t −10.7, " in pod


def test_no_name_leads_out_of_the_package() -> None:
    for name in ("", "unknown", "../published/vinken-2022", "vinken-2022.toml"):
        assert not read_published(name).rows


@pytest.mark.parametrize("name", ["hook-environments", "virtualization"])
def test_a_plan_has_all_that_was_published_of_it(name: str) -> None:
    declared = tomllib.loads((PLANS / f"{name}.toml").read_text())
    assert declared["published"] in str(Plan.model_fields["published"].annotation)
    published = read_published(declared["published"])
    assert published.source
    assert all(row.text for row in published.rows)
    conditions = {condition["name"] for condition in declared["conditions"]}
    kinds = {
        environment if isinstance(environment, str) else environment["type"]
        for environment in declared["environments"]
    }
    for row in published.rows:
        assert row.condition in conditions | kinds
        assert row.environment in kinds | {"", "pods-across-nodes"}


def test_a_guest_is_the_same_whatever_boots_it() -> None:
    published, span = read_published("vinken-2022"), "orders: GET /Orders/create/id/{id} (server)"
    (vm,) = published.cells("best-fit", "traced", "vm-uml", span)
    assert vm == published.cells("best-fit", "traced", "vm", span)[0] != "–"
    assert published.cells("best-fit", "traced", "container-in-vm-tcg", span) != [vm]
    assert published.columns("pooled-t") == []
