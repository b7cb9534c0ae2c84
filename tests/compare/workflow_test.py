# SPDX-License-Identifier: Apache-2.0
"""The example workflow: YAML that says what it should, with commands that Tare knows."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from tare.cli import app
from tare.plan import load

WORKFLOW = Path(__file__).parents[2] / "docs/examples/github-actions.yml"
PLAN = WORKFLOW.with_name("change.toml")


def steps() -> list[dict[str, Any]]:
    (job,) = yaml.safe_load(WORKFLOW.read_text())["jobs"].values()
    return list(job["steps"])


def commands(scripts: str) -> list[list[str]]:
    """Every line that begins with tare, in words, without what the shell does with its output."""
    lines = (line.strip() for line in scripts.replace("\\\n", " ").splitlines())
    return [
        shlex.split(re.sub(r"\s*([>|;#]|&&).*", "", line))
        for line in lines
        if re.match("tare ", line)
    ]


def parse(words: list[str]) -> dict[str, Any]:
    """The parameters of a command line as Tare reads them; fails as Tare would, runs nothing."""
    group: Any = typer.main.get_command(app)
    command = group.get_command(group.make_context("tare", words[1:]), words[1])
    assert command is not None, words
    return dict(command.make_context(words[1], words[2:]).params)


def test_it_is_a_workflow_whose_steps_do_one_thing() -> None:
    workflow = yaml.safe_load(WORKFLOW.read_text())
    assert {"name", "permissions", "jobs"} <= workflow.keys()
    assert all(("run" in step) != ("uses" in step) for step in steps())


def test_every_command_line_of_tare_is_understood() -> None:
    found = [parse(words) for step in steps() for words in commands(step.get("run", ""))]
    ran, compared = found
    assert [str(ran["out"])] == compared["what"]
    assert Path(ran["plan_file"]).name == PLAN.name
    assert compared["as_markdown"]
    assert compared["fail_on"] == ["slower,invalid"]
    assert str(compared["history"]) == "history"


def test_its_plan_sets_the_two_checkouts_side_by_side() -> None:
    paths = {step["with"]["path"] for step in steps() if "checkout" in step.get("uses", "")}
    plan = load(PLAN)
    assert plan.baseline_name == "base"
    assert plan.design_used == "interleaved"
    assert {condition.name for condition in plan.conditions} == paths
    assert all(f'"{{plan}}/../../{path}"' in plan.text for path in paths)


def test_a_wrong_option_would_be_seen() -> None:
    with pytest.raises(typer.TyperException, match="No such option"):
        parse(["tare", "compare", "a", "b", "--fail-in", "slower"])


def test_nothing_from_outside_stands_in_a_script() -> None:
    """A branch or title from a fork must reach the shell through a variable, never as its text."""
    assert not [step for step in steps() if "${{" in step.get("run", "")]


def test_what_the_comparison_writes_is_what_is_shown() -> None:
    scripts = [step.get("run", "") for step in steps()]
    assert sum("comment.md" in script for script in scripts) == 3
    after = scripts.index(next(script for script in scripts if "tare compare" in script)) + 1
    assert all(step["if"].startswith("always()") for step in steps()[after:])
