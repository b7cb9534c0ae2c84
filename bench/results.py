# SPDX-License-Identifier: Apache-2.0
"""Sections of docs/results.md and of other pages, each renewed by the series that owns it."""

import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results.md"
HEAD = """\
<!-- SPDX-License-Identifier: Apache-2.0 -->
# Results

What was measured, where, when, by which command. Every section is written by its own series.
"""


def renew(name: str, title: str, command: str, body: str, file: Path = RESULTS) -> None:
    """Replaces the section between the markers of `name`, or adds it at the end of the file."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    about = f"{_machine()}; {datetime.now(UTC):%Y-%m-%d}; commit {commit()}; `{command}`"
    section = f"{begin}\n## {title}\n{about}\n\n{body.strip()}\n{end}\n"
    text = file.read_text() if file.exists() else HEAD
    if begin in text and end in text:
        before, rest = text.split(begin, 1)
        text = before + section + rest.split(end, 1)[1].lstrip("\n")
    else:
        text = f"{text.rstrip()}\n\n{section}"
    file.write_text(text)


def _machine() -> str:
    model = "unknown CPU"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    cpus = len(list(Path("/sys/devices/system/cpu").glob("cpu[0-9]*")))
    return f"{cpus} CPUs {model}, Linux {platform.release()}"


def commit() -> str:
    """What is measured: the commit, and whether files were changed since."""

    def git(*words: str) -> str:
        return subprocess.check_output(["git", *words], cwd=ROOT, text=True).strip()

    # What the series before this one wrote.
    pages = ["docs/results.md", "docs/statistics.md", "docs/images/*.svg"]
    own = [f":!{name}" for name in (*pages, "bench/*/results.jsonl", "tests/soak/*.jsonl")]
    changes = git("status", "--porcelain", "-uno", "--", ".", *own)
    changed = " with uncommitted changes" if changes else ""
    return git("rev-parse", "--short=10", "HEAD") + changed
