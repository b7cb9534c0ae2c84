# SPDX-License-Identifier: Apache-2.0
"""Whatever a name, a path or a log line has in it, no command sends it to a terminal raw."""

import json
import os
import pty
import subprocess
import sys
import threading
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TextIO
from unittest.mock import patch

import pytest
from tests.in_process import exit_code
from tests.log.conftest import ran
from tests.report.synthetic import Synthetic
from tests.waiting import SECONDS

from tare.cli.shared.progress import Bar
from tare.lab.doctor import Finding
from tare.running.created_resources import Made
from tare.running.programs import Program

ESCAPE = "a\x1b[31mb\x1b]0;c\x07d\x9b2Je\u202ef\x7f\u0601\U0001d173g"
SHOWN = "a\\x1b[31mb"
PLAN = """
name = "plan"
budget = "3%"
blocks = 1
smoke = true
service = { command = "cat {port}" }
[[conditions]]
name = "one"
[[conditions]]
name = "two"
"""
FINDING = Finding("group", "probe", "no", ESCAPE, ESCAPE, ESCAPE, {})
PROGRAM = Program(1, ESCAPE, "log", 0.0, None)
MADE = Made(ESCAPE, ESCAPE, 1, 0, [])


@contextmanager
def terminal() -> Iterator[tuple[TextIO, Callable[[], str]]]:
    """What writes to a terminal, and a function that ends it and returns its text."""
    master, slave = pty.openpty()
    found: list[bytes] = []

    def collect() -> None:
        try:
            while data := os.read(master, 65_536):
                found.append(data)
        except OSError:
            """The last writer has closed it."""

    reader = threading.Thread(target=collect)
    reader.start()
    with os.fdopen(slave, "w", encoding="utf-8") as stream:

        def text() -> str:
            stream.close()
            reader.join()
            return b"".join(found).decode()

        yield stream, text
    os.close(master)


@contextmanager
def own_output() -> Iterator[Callable[[], str]]:
    """A terminal for standard output and errors of this process."""
    with terminal() as (stream, text), patch("sys.stdout", stream), patch("sys.stderr", stream):
        yield text


def assert_no_control_characters(printed: str) -> None:
    assert printed
    raw = {
        character for character in printed if unicodedata.category(character) in ("Cc", "Cf")
    } - {*"\r\n"}
    assert not raw, printed


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results, files and plans whose names, and all that they hold, have escape sequences."""
    folder = tmp_path_factory.mktemp("terminal")
    made_up = Synthetic(
        name=ESCAPE,
        effects={"plain": 0.0, ESCAPE: 0.1},
        environments=(f"one {ESCAPE}", f"two {ESCAPE}"),
        hooked=(ESCAPE,),
        spans={ESCAPE: 0.5},
        warnings=(ESCAPE,),
        reason=ESCAPE,
        log_tail=(ESCAPE,),
        control=True,
        blocks=6,
        requests=100,
    )
    for name in ("result", "other"):
        path = made_up.write(folder / f"{name} {ESCAPE}") / "manifest.json"
        changed = json.loads(path.read_text())
        changed["machine"]["kernel"] = f"{name} {ESCAPE}"
        changed["conditions"][1]["layers"] = [{"type": f"{name} {ESCAPE}"}]
        path.write_text(json.dumps(changed))
        made_up = replace(made_up, seed=8)
    for name in ("one", "two"):
        times = "".join(f"{start},{start % 7}\n" for start in range(1, 50))
        (folder / f"{name} {ESCAPE}.csv").write_text(f"start_time,response_time\n{times}")
    (folder / f"bad {ESCAPE}.csv").write_text(f"{ESCAPE},{ESCAPE}\n1,2\n")
    # Comments of TOML can have some of them.
    (folder / "plan.toml").write_text(f"{PLAN}# \x9b2J\u202e\n")
    (folder / f"bad {ESCAPE}.toml").write_text(
        PLAN.replace('"one"', '"a\\u001b[31mb"').replace("smoke", '"a\\u001b[31mb"')
    )
    (folder / "rules.toml").write_text("[[rule]]\nkeywords = ['needle']\n")
    script = "import sys; from tare.log import Channel; Channel(sys.argv[1]).log(1)"
    ran(folder / f"events {ESCAPE}", Path(sys.executable), "-c", script, ESCAPE)
    (folder / "broken").mkdir()
    (folder / "broken" / "manifest.json").write_text(json.dumps({"runs": ESCAPE}))
    return folder


RESULT, OTHER = f"result {ESCAPE}", f"other {ESCAPE}"
FILES = f"--baseline=plain=one {ESCAPE}.csv", f"{ESCAPE}=two {ESCAPE}.csv"


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "words",
    [
        ("compare", RESULT),
        ("compare", RESULT, "--json"),
        ("compare", RESULT, "--markdown"),
        ("compare", RESULT, "--history", f"history {ESCAPE}"),
        ("compare", RESULT, "--fail-on", "slower,inconclusive,invalid"),
        ("compare", RESULT, OTHER),
        ("compare", RESULT, OTHER, "--condition", f"no {ESCAPE}"),
        ("compare", "broken"),
        ("compare", f"none {ESCAPE}"),
        ("compare", *FILES),
        ("compare", *FILES, "--method", "published-t"),
        ("compare", *FILES, "--unit", f"{ESCAPE}=us"),
        ("compare", *FILES, f"bad=bad {ESCAPE}.csv"),
        ("compare", *FILES, f"--{ESCAPE}"),
        ("report", RESULT),
        ("report", RESULT, "--json"),
        ("report", f"none {ESCAPE}"),
        ("run", "plan.toml", "--dry-run"),
        ("run", "plan.toml", "--print-plan"),
        ("run", f"bad {ESCAPE}.toml"),
        ("run", f"none {ESCAPE}"),
        ("run", "plan.toml", "--resume", RESULT),
        ("run", "plan.toml", "--out", RESULT),
        ("calibrate", f"bad {ESCAPE}.toml"),
        ("calibrate", "plan.toml", "--delays", ESCAPE),
        ("ps",),
        ("ps", "--json"),
        ("clean",),
        ("clean", "--json"),
        ("doctor",),
        (ESCAPE,),
    ],
    ids=lambda words: " ".join(words).replace(ESCAPE, "ESC"),
)
def test_no_control_character_reaches_a_terminal(words: tuple[str, ...], folder: Path) -> None:
    with (
        chdir(folder),
        patch("tare.running.programs", lambda: [PROGRAM]),
        patch("tare.running.made_things", lambda: [MADE]),
        patch("tare.running.remove_leftovers", lambda: [Path(ESCAPE)]),
        patch("tare.lab.doctor.examine", lambda _: [FINDING]),
        own_output() as text,
    ):
        exit_code(*words, TERM="dumb")
        assert_no_control_characters(text())


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "words",
    [
        ("hook", "--rules", f"none {ESCAPE}", "--", "true"),
        ("hook", "--rules", f"bad {ESCAPE}.toml", "--", "true"),
        ("hook", "--rules", "rules.toml", "--", f"none {ESCAPE}"),
        ("hook", "--rules", "rules.toml", "--events", f"none {ESCAPE}/events", "--", "true"),
        ("hook", "--attach", ESCAPE),
        ("link", "--", f"none {ESCAPE}"),
        ("link", "check", f"none {ESCAPE}"),
        ("link", "--only", ESCAPE, "--", "true"),
        ("log", "run", "--", f"none {ESCAPE}"),
        ("log", "run", "--out", f"none {ESCAPE}/events", "--", "true"),
        ("log", "dump", f"events {ESCAPE}"),
        ("log", "dump", f"events {ESCAPE}", "--json"),
        ("log", "dump", f"bad {ESCAPE}.toml"),
        ("log", "stats", f"events {ESCAPE}"),
        ("log", "export", f"events {ESCAPE}", "--to", ESCAPE),
        ("log", "recover", f"none {ESCAPE}", "--out", "recovered"),
        ("log", "top", f"events {ESCAPE}", "--once"),
        ("log", "sync", ESCAPE),
        ("map", ESCAPE),
        ("map", "--duration", ESCAPE),
        ("load", "http", f"http://{ESCAPE}"),
        ("load", "tcp", ESCAPE),
        ("spans", "show", f"none {ESCAPE}"),
        ("spans", "show", f"bad {ESCAPE}.toml"),
        ("spans", "run", "--out", f"none {ESCAPE}/spans", "--", "true"),
        ("spans", "fetch", ESCAPE),
        ("init", f"none {ESCAPE}/plan.toml", "--service", ESCAPE, "--layer", "hook"),
        ("init", f"new {ESCAPE}.toml", "--service", f"cat {ESCAPE}", "--layer", ESCAPE),
    ],
    ids=lambda words: " ".join(words).replace(ESCAPE, "ESC"),
)
def test_no_control_character_of_a_native_command_reaches_a_terminal(
    words: tuple[str, ...], folder: Path
) -> None:
    with terminal() as (stream, text):
        subprocess.run(
            [sys.executable, "-m", "tare", *words],
            cwd=folder,
            env=os.environ | {"TERM": "dumb", "NO_COLOR": "1"},
            stdin=subprocess.DEVNULL,
            stdout=stream,
            stderr=stream,
            timeout=SECONDS,
            check=False,
        )
        printed = text()
    assert_no_control_characters(printed)
    assert "Traceback" not in printed


def test_progress_shows_names_as_they_are_with_escapes() -> None:
    # A terminal that is dumb has no progress bar.
    variables = {"TERM": "xterm", "COLUMNS": "200", "NO_COLOR": "1"}
    with patch.dict(os.environ, variables), own_output() as text:
        with Bar() as bar:
            bar.group(f"[bold]{ESCAPE}")
            bar.bar.refresh()
        printed = text()
    assert f"[bold]{SHOWN}" in printed
