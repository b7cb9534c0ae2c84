# SPDX-License-Identifier: Apache-2.0
"""The README's plan is a plan, and its links lead somewhere."""

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tare.plan import load

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_plan_in_the_readme_is_valid(tmp_path: Path) -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", README, flags=re.DOTALL)
    plan = tmp_path / "plan.toml"
    plan.write_text(text)
    assert load(plan).baseline_name == "plain"


@pytest.mark.parametrize("page", ["README.md", "docs/run.md"])
def test_the_first_command_means_the_plan_on_the_page(page: str) -> None:
    text = (ROOT / page).read_text()
    plan = re.findall(r"```toml\n(name.*?)```", text, flags=re.DOTALL)[0]
    command = next(line for line in text.splitlines() if line.startswith("tare run --service"))
    printed = subprocess.run(
        [sys.executable, "-m", *shlex.split(command), "--print-plan"],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    assert tomllib.loads(printed) == tomllib.loads(plan)


def test_links_lead_to_files() -> None:
    for document in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")):
        for link in re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text()):
            if "://" not in link:
                assert (document.parent / link).exists(), f"{document.name}: {link}"
