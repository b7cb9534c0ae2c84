# SPDX-License-Identifier: Apache-2.0
"""Pages of internals name files that exist."""

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = sorted((ROOT / "docs" / "internals").glob("*.md"))
NAME = re.compile(r"(?<![\w./-])[\w-][\w./-]*\.(?:rs|py|c|h|toml)\b(?!\.\w)")
# Names of files that are in no tree of sources.
OTHERS = {
    "plan.toml": "of a result, and of the user in examples",
    "scripts/welch_ttest.py": "of hyperfine",
}


def names(text: str) -> set[str]:
    """The paths and bare names of files in a text, without the targets of its links."""
    return {*NAME.findall(re.sub(r"\]\([^)\n]*\)", "]", text))}


def test_files_on_pages_of_internals_exist() -> None:
    files = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines()
    ends = {"/".join(Path(file).parts[-n:]) for file in files for n in range(1, 12)}
    found = [
        f"{page.relative_to(ROOT)}: {name}: no such file"
        for page in PAGES
        for name in sorted(names(page.read_text(encoding="utf-8")) - ends - OTHERS.keys())
    ]
    assert not found, "\n" + "\n".join(found)


def test_names_of_files_are_found() -> None:
    text = "`a/b-c.rs`, `d.py`; e.toml.\n[f.c](../g.h) `h.pyc` i.toml.in"
    assert names(text) == {"a/b-c.rs", "d.py", "e.toml", "f.c"}


def test_exceptions_are_needed() -> None:
    named = {name for page in PAGES for name in names(page.read_text(encoding="utf-8"))}
    assert named >= OTHERS.keys()
