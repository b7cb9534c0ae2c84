# SPDX-License-Identifier: Apache-2.0
import tomllib
from pathlib import Path

import pytest

from tare.errors import InputError
from tare.lab.run.calibration import BEGUN, Calibrated, Extent, calibrations, service_text
from tare.plan import Plan, parse
from tare.plan.schema.layers import EnvLayer

PLAN = r"""
name = "try"
kind = "both"
budget = "3%"
baseline = "layered"
seed = 7
[service]
command = ["busy", "--name", "a \"b\" \\ é 🙂 \u007F", "{port}", "{plan}/x"]
environment = { WAIT = "40", OTHER = "yes" }
[load]
headers = { A = "x\ty" }
rate = 1e3
mode = "open"
[[conditions]]
name = "plain"
[[conditions]]
name = "layered"
layers = [{ type = "hook" }]
"""
CALIBRATION = "[calibration]\nvariable = 'WAIT'\n"
REQUESTS = "requests = { short = '1300us', long = '27ms' }\n"


def read(text: str) -> Plan:
    return parse(text, "plans/try.toml", Path("/plans"))


def calibrated(text: str = PLAN + CALIBRATION) -> list[Calibrated]:
    return calibrations(read(text), Extent([0, 50_000], repetitions=3, blocks=6))


def variables(plan: Plan) -> dict[str, str]:
    """Of the first layer, the nearest to the service, of every condition."""
    found: dict[str, str] = {}
    for condition in plan.conditions:
        layer = condition.layers[0]
        assert isinstance(layer, EnvLayer)
        found |= {condition.name: layer.variables["WAIT"]}
    return found


def test_conditions_equal_the_baseline_but_for_the_busy_wait() -> None:
    (part,) = calibrated()
    assert variables(part.plan) == {"0us": "40", "50us": "90"}
    assert [condition.layers[1].type for condition in part.plan.conditions] == ["hook", "hook"]
    assert part.steps == {0: part.plan.control_name, 50_000: "50us"}
    assert (part.plan.baseline_name, part.plan.blocks, part.plan.seed) == ("0us", 18, 7)


def test_everything_else_of_the_plan_stays_as_it_was_written() -> None:
    (part,) = calibrated()
    was, now = tomllib.loads(PLAN), tomllib.loads(part.plan.text)
    assert now["service"] == was["service"]
    assert now["load"] == was["load"]


def test_each_request_is_an_experiment_of_its_own() -> None:
    short, long = calibrated(PLAN + CALIBRATION + REQUESTS)
    assert (short.name, short.plan.name) == ("short", "try-short")
    assert variables(short.plan) == {"0us": "1300", "50us": "1350"}
    assert variables(long.plan) == {"0us": "27000", "50us": "27050"}
    assert short.service != long.service


def test_variables_make_a_kind_of_requests() -> None:
    rows = "variables = { long = { ROWS = '7' } }\n"
    short, long = calibrated(PLAN + CALIBRATION + REQUESTS + rows)
    assert "ROWS" not in short.plan.text
    layers = [condition.layers[0].model_dump() for condition in long.plan.conditions]
    assert [layer["variables"] for layer in layers] == [
        {"ROWS": "7", "WAIT": "27000"}, {"ROWS": "7", "WAIT": "27050"},
    ]  # fmt: skip
    assert "ROWS=7 WAIT=27000" in long.service


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ("{ lnog = { ROWS = '7' } }", "expected one of requests: short, long"),
        ("{ long = { WAIT = '7' } }", "expected other variables than WAIT, which has the busy"),
    ],
)
def test_variables_of_no_requests_are_refused(variables: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        calibrated(PLAN + CALIBRATION + REQUESTS + f"variables = {variables}\n")
    assert message in str(caught.value)


def test_without_a_busy_wait_of_its_own_the_service_is_called_as_in_the_plan() -> None:
    text = PLAN.replace('WAIT = "40", ', "")
    (part,) = calibrated(text + CALIBRATION)
    assert variables(part.plan) == {"0us": "0", "50us": "50"}
    assert part.service == service_text(read(text))


def test_a_long_name_is_cut_to_what_a_plan_may_be_called() -> None:
    text = PLAN.replace('"try"', f'"{"x" * 64}"') + CALIBRATION + REQUESTS
    assert [len(part.plan.name) for part in calibrated(text)] == [64, 64]


def test_a_plan_of_the_same_service_is_recognised() -> None:
    (part,) = calibrated()
    assert service_text(read(PLAN)) == part.service
    assert "/plans/x" in part.service
    for old, new in (('WAIT = "40"', 'WAIT = "41"'), ('"busy"', '"lazy"'), ("layered", "plain")):
        assert service_text(read(PLAN.replace(old, new, 1))) != part.service


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PLAN, "plans/try.toml: has no table [calibration]; add one with variable = NAME"),
        (
            PLAN.replace('"40"', '"soon"') + CALIBRATION,
            'plans/try.toml:9: service.environment.WAIT: found "soon", expected whole microseconds',
        ),
    ],
)
def test_a_plan_without_a_busy_wait_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        calibrated(text)
    assert message in str(caught.value)


def test_what_was_begun_is_finished_as_it_was_begun(tmp_path: Path) -> None:
    extent, folder = Extent([0, 70_000], repetitions=3, blocks=10), tmp_path / "new/result"
    extent.begin(folder)
    assert Extent.begun(folder) == extent
    with pytest.raises(InputError, match="is not empty; choose another folder with --out"):
        extent.begin(folder)


@pytest.mark.parametrize("text", [None, "", "[]", '{"delays": [0], "repetitions": "3"}'])
def test_where_none_was_begun_nothing_is_resumed(text: str | None, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / BEGUN).write_text(text)
    with pytest.raises(InputError, match=rf"{BEGUN}: .*; there is nothing to resume"):
        Extent.begun(tmp_path)
