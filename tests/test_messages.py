# SPDX-License-Identifier: Apache-2.0
"""Help and messages use the words of an engineer's English."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from tests.in_process import tare
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


def python_commands() -> Iterator[list[str]]:
    """The words of each command that is not native."""
    yield []
    commands: dict[str, object] = vars(typer.main.get_command(app))["commands"]
    for name, command in commands.items():
        assert "commands" not in vars(command), "walk its commands too"
        if name not in NATIVE_COMMANDS:
            yield [name]


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


@pytest.mark.parametrize("name", NATIVE_COMMANDS)
def test_help_of_native_commands(name: str) -> None:
    for words, text in native_commands(NATIVE_COMMANDS[name]):
        below = " ".join([name, *words[1:]])
        assert f"Usage: tare {below}" in text
        assert not misused(text), below


def test_short_help_is_the_same_command() -> None:
    for words in ([], ["run"], ["load"], ["log", "run"], ["hook"]):
        command = [sys.executable, "-m", "tare", *words, "-h"]
        text = subprocess.check_output(command, text=True)
        assert "Usage: tare" in text
