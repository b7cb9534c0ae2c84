# SPDX-License-Identifier: Apache-2.0
"""The README's plan is a plan, and its links lead somewhere."""

import re
from pathlib import Path

from tare.plan import load

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_plan_in_the_readme_is_valid(tmp_path: Path) -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", README, flags=re.DOTALL)
    plan = tmp_path / "plan.toml"
    plan.write_text(text)
    assert load(plan).baseline_name == "plain"


def test_links_lead_to_files() -> None:
    for document in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")):
        for link in re.findall(r"\]\(([^)#]+)[^)]*\)", document.read_text()):
            if "://" not in link:
                assert (document.parent / link).exists(), f"{document.name}: {link}"
