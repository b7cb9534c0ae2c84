# SPDX-License-Identifier: Apache-2.0
"""The whole suite of tests, again and again, beside none, two and four CPU-bound processes.

A run takes up to an hour, so the last ten stay beside this file, and a series goes on with them.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

from bench.results import ROOT, commit, machine, renew

FOUND = Path(__file__).with_suffix(".jsonl")
KEPT = 10
HOGS = (0, 2, 4)
TITLE = "The suite beside CPU-bound processes"
LIMIT_S = 3600
"""Of one run. `make test` takes under 600 s; beside four others on two CPUs three times as long."""
HOG = [sys.executable, "-c", "while True: pass"]
PYTEST = [sys.executable, "-m", "pytest", "-q", "-n", "4", "--dist", "worksteal"]


@dataclass(frozen=True)
class Run:
    """What became of the tests of one run."""

    hogs: int
    code: int
    """pytest's exit code; negative if it was ended."""
    tests: int = 0
    skipped: int = 0
    seconds: float = 0.0
    failed: tuple[str, ...] = ()
    commit: str = ""
    machine: str = ""
    """A series may go on on another one."""

    @property
    def row(self) -> str:
        verdict = "yes" if self.code == 0 else f"NO ({self.code})"
        cells = (self.commit, self.hogs, verdict, self.tests, len(self.failed), self.skipped)
        return f"| {' | '.join(map(str, cells))} | {self.seconds:.0f} s | {self.machine} |"


def run(runs: int, tests: Sequence[str] = ()) -> None:
    """Runs the suite so many times more and renews the section; or the named part of it, which is
    no part of the series. Raises SystemExit if a run failed."""
    done = [] if tests else kept()
    for _ in range(runs):
        done = [*done, run_once(HOGS[_next(done)], tests)][-KEPT:]
        print(done[-1].row, flush=True)
        if not tests:
            FOUND.write_text("".join(json.dumps(asdict(outcome)) + "\n" for outcome in done))
            renew("suite", TITLE, f"python -m tests.soak suite --runs {runs}", summary(done))
    if any(outcome.code for outcome in done[-runs:]):
        raise SystemExit(f"suite: a run failed\n{summary(done[-runs:])}")


def kept() -> list[Run]:
    """The runs of the series so far."""
    lines = FOUND.read_text().splitlines() if FOUND.exists() else []
    return [
        Run(**{**fields, "failed": tuple(fields["failed"])}) for fields in map(json.loads, lines)
    ]


def _next(done: Sequence[Run]) -> int:
    """Each number of processes in turn."""
    return (HOGS.index(done[-1].hogs) + 1) % len(HOGS) if done else 0


def run_once(hogs: int, tests: Sequence[str]) -> Run:
    """One run beside so many busy processes; it is ended after LIMIT_S."""
    with TemporaryDirectory() as folder, busy(hogs):
        report = Path(folder) / "report.xml"
        command = [*PYTEST, f"--junitxml={report}", *tests]
        with subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.DEVNULL, start_new_session=True
        ) as process:
            try:
                process.wait(LIMIT_S)
            except subprocess.TimeoutExpired:
                print(f"a run beside {hogs} is ended after {LIMIT_S} s", file=sys.stderr)
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
        code = process.returncode
        return (
            read(report, hogs, code)
            if report.exists()
            else Run(hogs, code, commit=commit(), machine=machine())
        )


@contextmanager
def busy(count: int, cpu: int | None = None) -> Iterator[list[subprocess.Popen[bytes]]]:
    """So many processes that each take all that they can get of a CPU: of any, or of `cpu`."""
    command = HOG if cpu is None else ["taskset", "-c", str(cpu), *HOG]
    with ExitStack() as stack:
        processes = []
        for _ in range(count):
            processes.append(stack.enter_context(subprocess.Popen(command)))
            stack.callback(processes[-1].kill)
        yield processes


def read(report: Path, hogs: int, code: int) -> Run:
    """What pytest's report in JUnit's XML says."""
    (suite,) = ElementTree.parse(report).getroot().iter("testsuite")
    failed = []
    for case in suite.iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        for found in (*case.iter("failure"), *case.iter("error")):
            print(f"{name}: {found.get('message')}\n{found.text}", file=sys.stderr)
            failed.append(name)
    tests, skipped = int(suite.get("tests", 0)), int(suite.get("skipped", 0))
    seconds = float(suite.get("time", 0))
    return Run(hogs, code, tests, skipped, seconds, (*dict.fromkeys(failed),), commit(), machine())


def summary(done: Sequence[Run]) -> str:
    """The section: a row per run, and what failed."""
    passed = sum(outcome.code == 0 for outcome in done)
    return "\n".join(
        [
            "| commit | CPU-bound processes | passed | tests | failed | skipped | time | machine |",
            "|---|---|---|---|---|---|---|---|",
            *(outcome.row for outcome in done),
            "",
            f"Passed: {passed} of {len(done)} (wanted: all).",
            *(
                f"- {outcome.hogs} processes: {name} failed"
                for outcome in done
                for name in outcome.failed
            ),
        ]
    )
