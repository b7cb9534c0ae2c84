# SPDX-License-Identifier: Apache-2.0
"""The loads of ready-made plans that other load generators make, for some seconds."""

import sys
import tomllib
from pathlib import Path

import pytest
from tests.lab.conftest import Experiment, experiment  # noqa: F401
from tests.peers.programs import installed

from tare.plan.text.toml_text import toml_text

ROOT = Path(__file__).parents[2]
SERVICE = ROOT / "tests" / "lab" / "chained_service.py"
pytestmark = pytest.mark.integration


@pytest.mark.parametrize(
    ("plan", "tool"),
    [("hook-environments-locust", "locust"), ("virtualization-jmeter", "jmeter")],
)
def test_another_load_generator_loads_the_service(
    experiment: Experiment,  # noqa: F811
    plan: str,
    tool: str,
) -> None:
    load = tomllib.loads((ROOT / "plans" / f"{plan}.toml").read_text())["load"]
    words = load["command"].replace(f" {tool} ", f" {installed(tool)} ")
    if words.startswith(tool):
        words = words.replace(tool, str(installed(tool)), 1)
    for long, short in (("80s", "4s"), ("=750", "=4"), ("{plan}", str(ROOT / "plans"))):
        words = words.replace(long, short)
    load |= {"command": words, "warmup": "500ms", "duration": "4s"}
    serve = [sys.executable, str(SERVICE), "{address}", "{port}"]
    data = {
        "name": plan,
        "budget": "3%",
        "blocks": 1,
        "smoke": True,
        "control": False,
        "service": {"command": serve, "ready": {"http": "/"}},
        "load": load,
        "conditions": [{"name": "first"}, {"name": "second"}],
    }
    experiment.plan.write_text(toml_text(data))
    done = experiment.measure()
    assert done.returncode == 0, done.stderr
    for run in experiment.manifest["runs"]:
        assert run["valid"], run
        assert run["requests"] > 10
        assert run["errors"] == 0
