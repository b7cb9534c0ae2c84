# SPDX-License-Identifier: Apache-2.0
"""Text is UTF-8 whatever the locale: every call that turns bytes into text says its encoding."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "python" / "tare"


def without_encoding(source: str) -> Iterator[str]:
    """The calls that would use the locale's encoding."""
    for call in ast.walk(ast.parse(source)):
        if isinstance(call, ast.Call):
            words = {word.arg: word.value for word in call.keywords}
            name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
            modes = [a.value for a in (*call.args, *words.values()) if isinstance(a, ast.Constant)]
            opens = name in ("open", "fdopen") and any(
                mode in ("r", "w", "a", "x") for mode in modes
            )
            # Another value of `text` is a string of a report, not the option of subprocess.
            decodes = isinstance(flag := words.get("text"), ast.Constant) and flag.value is True
            is_text = name in ("read_text", "write_text") or decodes or opens
            if is_text and "encoding" not in words:
                yield f"line {call.lineno}: {ast.unparse(call)}"


def test_every_text_says_its_encoding() -> None:
    code = [file for file in PACKAGE.rglob("*.py") if not file.name.endswith("_test.py")]
    found = {file: list(without_encoding(file.read_text(encoding="utf-8"))) for file in code}
    assert not {file: calls for file, calls in found.items() if calls}


def test_this_test_finds_what_it_looks_for() -> None:
    bad = "a.read_text(); b.open('w'); run(c, text=True)"
    good = "d.open('rb'); e.write_text('', encoding='utf-8'); Section(text=plan)"
    assert len(list(without_encoding(f"{bad}; {good}"))) == 3


def test_what_the_locale_lacks_is_printed_by_its_number() -> None:
    script = r"from tare.cli import main; main(); print('3 \u00b5s')"
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    printed = subprocess.check_output(
        [sys.executable, "-c", script, "--version"], env=os.environ | ascii_only
    )
    assert printed.splitlines()[-1] == rb"3 \xb5s"
