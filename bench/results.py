# SPDX-License-Identifier: Apache-2.0
"""Sections of docs/results.md and of other pages, each renewed by the series that owns it."""

import platform
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results.md"
HEAD = """\
<!-- SPDX-License-Identifier: Apache-2.0 -->
# Results

What was measured, where, when, by which command. Every section is written by its own series, \
and keeps the last result of each CPU model.
"""


def renew(name: str, title: str, command: str, body: str, file: Path = RESULTS) -> None:
    """Replaces what this machine's CPU model measured in the section `name` of a page.

    The section is between its markers; if there is none, it is added at the end of the page. It
    has one subsection per CPU model, and those of other models stay as they are. Raises
    ValueError if `body` has headings of its own.
    """
    if re.search("^#", body, re.MULTILINE):
        raise ValueError(f"{name}: the body of a section has a heading (expected none)")
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    text = file.read_text() if file.exists() else HEAD
    if begin not in text:
        text = f"{text.rstrip()}\n\n{begin}\n{end}\n"
    before, rest = text.split(begin, 1)
    section, after = rest.split(end, 1)
    _, *models = re.split("^### ", section, flags=re.MULTILINE)
    measured = dict(model.split("\n", 1) for model in models)
    about = f"Linux {platform.release()}; {datetime.now(UTC):%Y-%m-%d}; commit {commit()}"
    measured[machine()] = f"{about}; `{command}`\n\n{body}"
    subsections = [f"### {model}\n{found.strip()}\n\n" for model, found in measured.items()]
    file.write_text(f"{before}{begin}\n## {title}\n\n{''.join(subsections)}{end}{after}")


def machine() -> str:
    """This machine's CPUs, as "2 CPUs AMD EPYC"."""
    model = "unknown CPU"
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    cpus = len(list(Path("/sys/devices/system/cpu").glob("cpu[0-9]*")))
    return f"{cpus} CPUs {model}"


def commit() -> str:
    """What is measured: the commit, and whether files were changed since."""

    def git(*words: str) -> str:
        return subprocess.check_output(["git", *words], cwd=ROOT, text=True).strip()

    # What the series before this one wrote.
    pages = ["docs/results.md", "docs/internals/verdict-proof.md", "docs/images/*.svg"]
    own = [f":!{name}" for name in (*pages, "bench/*/results.jsonl", "tests/soak/*.jsonl")]
    changes = git("status", "--porcelain", "-uno", "--", ".", *own)
    changed = " with uncommitted changes" if changes else ""
    return git("rev-parse", "--short=10", "HEAD") + changed
