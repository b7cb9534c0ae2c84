# SPDX-License-Identifier: Apache-2.0
"""Rules from outside: by channel, process and thread, and read again while the program runs."""

import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.log.conftest import TARE_LOG, dump
from tests.log.jvm import LOGGING
from tests.log.languages import command
from tests.waiting import SECONDS, wait_for

COUNT = 1000
REREAD_S = 2  # rules are read again several times a second
NULL = "handler = 'null'"
WAIT = "[[rule]]\npolicy = 'wait'\n"

Compiled = Callable[[str], Path]


class Running:
    """`named` under `tare log run --rules`."""

    def __init__(self, process: subprocess.Popen[str], rules: Path, errors: Path) -> None:
        self.process, self.rules, self.errors = process, rules, errors

    def log(self) -> None:
        """Both threads log their events once."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("x")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"


@contextmanager
def running(compiled: Compiled, folder: Path, rules: str) -> Iterator[Running]:
    file, errors = folder / "rules.toml", folder / "errors"
    file.write_text(rules)
    out = folder / "events"
    command = [str(TARE_LOG), "run", "--rules", str(file), "--out", str(out), "--"]
    with (
        errors.open("w") as told,
        subprocess.Popen(
            [*command, str(compiled("named")), str(COUNT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=told,
            text=True,
        ) as process,
    ):
        yield Running(process, file, errors)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(SECONDS) == 0


def kept(folder: Path) -> Counter[tuple[str, str]]:
    """Events by thread and channel."""
    return Counter((row.thread, row.channel) for row in dump(folder / "events"))


ALL = {(f"worker-{n}", channel): COUNT for n in (0, 1) for channel in ("left", "right")}


@pytest.mark.parametrize(
    ("of", "silent"),
    [
        ("channel = 'l.*'", {("worker-0", "left"), ("worker-1", "left")}),
        ("channel = 'l'", set()),
        ("process = 'named'", set(ALL)),
        ("process = 'other'", set()),
        ("thread = 'worker-1'", {("worker-1", "left"), ("worker-1", "right")}),
        ("thread = 'worker-[0-9]'\nchannel = 'right'", {(f"worker-{n}", "right") for n in (0, 1)}),
    ],
)
def test_a_rule_holds_where_all_that_it_names_match(
    compiled: Compiled, tmp_path: Path, of: str, silent: set[tuple[str, str]]
) -> None:
    with running(compiled, tmp_path, f"[[rule]]\n{of}\n{NULL}\n{WAIT}") as program:
        program.log()
    assert kept(tmp_path) == {key: count for key, count in ALL.items() if key not in silent}


def test_the_first_rule_that_matches_holds(compiled: Compiled, tmp_path: Path) -> None:
    rules = f"[[rule]]\nthread = 'worker-0'\npolicy = 'wait'\n[[rule]]\nchannel = 'left'\n{NULL}\n"
    with running(compiled, tmp_path, rules + WAIT) as program:
        program.log()
    assert kept(tmp_path) == {key: n for key, n in ALL.items() if key != ("worker-1", "left")}


def test_a_rule_names_a_process_by_its_number(compiled: Compiled, tmp_path: Path) -> None:
    with running(compiled, tmp_path, WAIT) as program:
        program.log()
        children = Path(f"/proc/{program.process.pid}/task/{program.process.pid}/children")
        (child,) = children.read_text().split()
        program.rules.write_text(f"[[rule]]\nprocess = '{child}'\n{NULL}\n{WAIT}")
        time.sleep(REREAD_S)
        program.log()
    assert kept(tmp_path) == ALL


def test_rules_are_read_again(compiled: Compiled, tmp_path: Path) -> None:
    with running(compiled, tmp_path, WAIT) as program:
        program.log()
        program.rules.write_text(f"[[rule]]\nchannel = 'left'\n{NULL}\n{WAIT}")
        time.sleep(REREAD_S)
        program.log()
        # An editor's way.
        other = program.rules.with_suffix(".new")
        other.write_text(f"[[rule]]\nthread = 'worker-0'\n{NULL}\n{WAIT}")
        other.rename(program.rules)
        time.sleep(REREAD_S)
        program.log()
    times = {
        ("worker-0", "left"): 1,
        ("worker-0", "right"): 2,
        ("worker-1", "left"): 2,
        ("worker-1", "right"): 3,
    }
    assert kept(tmp_path) == {key: COUNT * n for key, n in times.items()}


def test_bad_rules_leave_those_before_in_force(compiled: Compiled, tmp_path: Path) -> None:
    with running(compiled, tmp_path, f"[[rule]]\nchannel = 'left'\n{NULL}\n{WAIT}") as program:
        program.log()
        program.rules.write_text("[[rule]]\nchannel = 'right'\nhandler = 'nul'\n")
        wait_for(program.errors.read_text)
        program.log()
    assert kept(tmp_path) == {key: 2 * n for key, n in ALL.items() if key[1] == "right"}
    (line,) = program.errors.read_text().splitlines()
    assert f"{program.rules}:3: rule[1].handler: found " in line
    assert line.endswith("; the previous rules stay in force")


def test_a_loop_in_python_sees_new_rules(tmp_path: Path) -> None:
    sees_new_rules(command("Python", "restless"), tmp_path)


def test_a_compiled_loop_in_java_sees_new_rules(java: list[str], tmp_path: Path) -> None:
    sees_new_rules([*java, LOGGING, "restless"], tmp_path)


def sees_new_rules(program: list[str], folder: Path) -> None:
    """One that logs without a pause, all of which is discarded, kept and discarded again."""
    rules, file = folder / "rules.toml", folder / "events"
    silent = f"[[rule]]\nchannel = 'restless'\n{NULL}\n"
    rules.write_text(silent)
    run = [TARE_LOG, "run", "--rules", str(rules), "--out", str(file), "--", *program]
    with subprocess.Popen(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        time.sleep(1)
        before = file.stat().st_size
        assert before < 10_000
        rules.write_text(WAIT)
        wait_for(lambda: file.stat().st_size > before + 10_000)
        rules.write_text(silent)
        sizes = [-2, -1]

        def stays() -> bool:
            time.sleep(0.3)
            sizes.append(file.stat().st_size)
            return sizes[-1] == sizes[-2] == sizes[-3]

        wait_for(stays)
        process.communicate(b"\n", timeout=SECONDS)
    assert process.returncode == 0
