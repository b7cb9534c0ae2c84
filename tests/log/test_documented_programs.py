# SPDX-License-Identifier: Apache-2.0
"""The programs on docs/log-languages.md, as they stand there; `cargo test` runs the one in Rust."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.log.conftest import TARE_LOG, dump
from tests.log.languages import INCLUDE, LIBRARIES, ROOT, STRICT, needs

SPAN = {"work>": 1000, "work<": 1000}
PROGRAMS = {
    "c": (["cc", "-std=c11"], {"requests": 100, "texts": 1}),
    "cpp": (["c++", "-std=c++17"], {"requests": 1000, "texts": 1, **SPAN}),
    "python": ([], {"requests": 1000, "texts": 1, "work>": 1001, "work<": 1001}),
}


@pytest.mark.parametrize("language", PROGRAMS)
def test_the_program_logs_what_it_says(language: str, tmp_path: Path) -> None:
    text = (ROOT / "docs" / "log-languages.md").read_text()
    (block,) = re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    compiler, expected = PROGRAMS[language]
    source, program = tmp_path / f"program.{language}", tmp_path / "program"
    source.write_text(block, encoding="utf-8")
    command = [sys.executable, str(source)]
    if compiler:
        needs(compiler[0])
        flags = [*compiler, *STRICT, f"-I{INCLUDE}", str(source)]
        libraries = [f"{LIBRARIES}/libtare_log.a", "-o", str(program)]
        subprocess.run([*flags, *libraries], check=True)
        command = [str(program)]
    file = tmp_path / "events.log"
    subprocess.run([TARE_LOG, "run", "--out", str(file), "--", *command], check=True)
    rows = dump(file)
    assert Counter(row.channel for row in rows) == expected
    assert [row.payload for row in rows if row.channel == "texts"] == ["done"]
