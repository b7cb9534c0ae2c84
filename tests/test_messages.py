# SPDX-License-Identifier: Apache-2.0
"""Help and messages use the words of an engineer's English."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.in_process import tare
from tests.test_user_pages import ROOT
from tests.test_user_pages import WORDS as PAGE_WORDS

from tare.__main__ import NATIVE_COMMANDS
from tare.cli import app
from tare.native import native

# Words of messages, besides those that pages must not have either.
WORDS = {
    **PAGE_WORDS,
    r"\btells? of\b|\bunless (?:it |they )?says?\b": "sets",
    r"\bso long\b": "this time",
    r"\b(?:the|that|this|each|which|other|new|own|next|first|usual|another) one\b"
    r"|\bone for each\b|\bone's\b": "the noun itself",
    r"\bwhoever\b|\bwho\b|\bwhatever\b|\bwhose\b|\bof which\b": "the program, the client",
    r"\bit should\b": "expected ...",
    r"\b(?:died|dies)\b": "exited, was killed, crashed",
    r"\bmeanwhile\b|\banew\b": "again",
    r"\bspans? around\b": "the parent span",
    r"\bA/A pair\b|\bsecond baseline\b(?! under)": "the control",
    r"\bneighbours?\b|\bdoors?\b|\bporters?\b|\bfamily\b": "the field's term",
}


def misused(text: str) -> list[str]:
    """Each phrase of `text` that is in `WORDS`, with what to write."""
    text = " ".join(text.split())
    found = []
    for words, instead in WORDS.items():
        for match in re.finditer(words, text, re.IGNORECASE):
            around = text[max(0, match.start() - 40) : match.end() + 40]
            found.append(f"{match[0]!r} in {around!r}: write {instead}")
    return found


def texts_of_python(path: Path) -> Iterator[tuple[int, str]]:
    """The texts in a module, without docstrings; what is inserted into them is left out."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = set[int]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            skipped.add(id(node.value))
        if isinstance(node, ast.JoinedStr):
            skipped.update(id(part) for part in ast.walk(node) if part is not node)
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
        if isinstance(node, ast.JoinedStr):
            parts = [
                piece.value if isinstance(piece, ast.Constant) else "X" for piece in node.values
            ]
            yield node.lineno, "".join(map(str, parts))


def texts_of_rust(path: Path) -> Iterator[tuple[int, str]]:
    """The texts in a module, without tests, comments and raw strings."""
    text = path.read_text(encoding="utf-8").partition("#[cfg(test)]")[0]
    for pattern in (r'\bb?r(#*)".*?"\1', r"//[^\n]*"):
        blank = lambda found: "\n" * found[0].count("\n")  # noqa: E731
        text = re.sub(pattern, blank, text, flags=re.DOTALL)
    for found in re.finditer(r'"((?:\\.|[^"\\])*)"', text, re.DOTALL):
        yield text.count("\n", 0, found.start()) + 1, re.sub(r"\\\n\s*", "", found[1])


def sources(folder: str, ending: str) -> Iterator[Path]:
    for path in sorted((ROOT / folder).rglob(f"*.{ending}")):
        is_test = path.stem.endswith("_test") or path.stem == "tests" or "tests" in path.parts
        if not is_test and not {"target", "examples", "benches"} & {*path.parts}:
            yield path


def python_commands() -> Iterator[list[str]]:
    """The words of each command that is not native."""
    yield from _below([], vars(typer.main.get_command(app)))


def _below(words: list[str], command: dict[str, Any]) -> Iterator[list[str]]:
    """A command and all commands below it."""
    yield words
    for name, inner in command.get("commands", {}).items():
        if " ".join([*words, name]) not in NATIVE_COMMANDS:
            yield from _below([*words, name], vars(inner))


def native_help(*words: str) -> str:
    program, *rest = words
    path = native("bin", program)
    if not Path(path).exists():
        pytest.skip(f"{program} is not built")
    done = subprocess.run([path, *rest, "--help"], capture_output=True, text=True, check=True)
    return done.stdout


def native_commands(*words: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """A native command and all below it, with their help."""
    text = native_help(*words)
    yield words, text
    listed = re.search(r"^Commands:\n((?:  .*\n)+)", text, re.MULTILINE)
    for name in re.findall(r"^  (\w[\w-]*)", listed[1], re.MULTILINE) if listed else []:
        if name != "help":
            yield from native_commands(*words, name)


def test_words_are_found() -> None:
    assert len(misused("It is told who asks.")) == 2
    assert misused("1000 requests a\n   second")
    assert not misused("One of the requests is in the log, once per second.")


@pytest.mark.parametrize("words", [*python_commands()], ids=" ".join)
def test_help_of_python_commands(words: list[str]) -> None:
    done = tare(*words, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith("Usage: tare")
    assert not misused(done.stdout)


@pytest.mark.parametrize("program", sorted({*NATIVE_COMMANDS.values()}))
def test_help_of_native_commands(program: str) -> None:
    for words, text in native_commands(program):
        below = " ".join([program.removeprefix("tare-"), *words[1:]])
        assert f"Usage: tare {below}" in text
        assert not misused(text), below


def test_texts_in_sources() -> None:
    """Errors, warnings and reports: every text of three words or more."""
    readers = {"py": ("python/tare", texts_of_python), "rs": ("crates", texts_of_rust)}
    found = [
        f"{path.relative_to(ROOT)}:{line}: {fault}"
        for ending, (folder, texts) in readers.items()
        for path in sources(folder, ending)
        for line, text in texts(path)
        if len(text.split()) >= 3
        for fault in misused(text)
    ]
    assert not found, "\n" + "\n".join(found)


def test_short_help_is_the_same_command() -> None:
    for words in ([], ["run"], ["load"], ["log", "run"], ["hook"]):
        command = [sys.executable, "-m", "tare", *words, "-h"]
        text = subprocess.check_output(command, text=True)
        assert "Usage: tare" in text
