# SPDX-License-Identifier: Apache-2.0
"""Short experiments on a real nginx."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import chdir, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from tests.in_process import Done, tare
from tests.nginx import configuration
from tests.waiting import wait_for

from tare.lab.processes.processes import Processes
from tare.lab.processes.supervisor import descendants
from tare.native import native

NGINX_CONF = configuration(
    'server { listen {address}:{port}; location / { return 200 "hello\\n"; } }'
)
PLAN = """\
name = "short"
budget = "5%"
blocks = 2
smoke = true
seed = 1
{top}

[service]
command = "nginx -p {dir} -c nginx.conf -e stderr"
ready = { http = "/", timeout = "{patience}" }
{service}

[service.files]
"nginx.conf" = '''{nginx}'''

[load]
{load}

[[conditions]]
name = "one"

[[conditions]]
name = "two"
layers = [{layers}]
"""
# Counts its starts, and holds all but the first few until it is released.
HELD = [
    "sh",
    "-c",
    'echo >>"$0/starts"; while [ -e "$0/hold" ]'
    ' && [ "$(wc -l <"$0/starts")" -gt "$(cat "$0/hold")" ]; do sleep 0.05; done; exec "$@"',
    "{plan}",
]
HOLD = f'{{ type = "wrap", command = {json.dumps(HELD)} }}'
REPORT, VERDICT = "tare.report.write", "tare.cli.run.conclude"
OWN_LOAD = 'warmup = "20ms"\nduration = "100ms"\n'


@dataclass
class Experiment:
    """A plan in a folder of its own, and `tare run` on it."""

    folder: Path
    started: "list[subprocess.Popen[str]]" = field(default_factory=list)

    @property
    def plan(self) -> Path:
        return self.folder / "plan.toml"

    @property
    def result(self) -> Path:
        return self.folder / "result"

    def write_plan_of_layers(self, environments: str) -> None:
        """With a condition for each of hook, link and proxy, in environments (TOML of a list)."""
        layers = [
            '{ type = "hook" }',
            '{ type = "link" }',
            '{ type = "proxy", program = "nginx" }',
        ]
        self.write_plan(top=f"environments = {environments}", layers=layers[0])
        conditions = "".join(
            f'\n[[conditions]]\nname = "more{number}"\nlayers = [{layer}]\n'
            for number, layer in enumerate(layers[1:])
        )
        self.plan.write_text(self.plan.read_text() + conditions)

    def write_plan(
        self,
        *,
        top: str = "",
        service: str = "",
        load: str = OWN_LOAD,
        layers: str = "",
        nginx: str = NGINX_CONF,
        patience: str = "60s",
    ) -> None:
        """Writes the short plan with some keys more."""
        parts = {"top": top, "service": service, "load": load, "layers": layers, "nginx": nginx}
        parts["patience"] = patience
        text = PLAN
        for name, part in parts.items():
            text = text.replace(f"{{{name}}}", part)
        self.plan.write_text(text)

    def start(self, *words: str) -> "subprocess.Popen[str]":
        """Starts `tare run` on the plan in a session of its own."""
        command = [sys.executable, "-m", "tare", "run", str(self.plan), *words]
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            cwd=self.folder,
        )
        self.started.append(process)
        return process

    def run(self, *words: str, report: bool = False) -> Done:
        """Runs `tare run` on the plan to its end; without its `report`, which takes longer than
        a short experiment, unless a test reads it."""
        return self._tare("--out", self.result, *words, without=None if report else REPORT)

    def resume(self, *words: str, report: bool = False) -> Done:
        """`run`, of the result that is there."""
        return self._tare("--resume", self.result, *words, without=None if report else REPORT)

    def measure(self, blocks: int | None = None) -> Done:
        """Carries the plan out, without verdict and report."""
        words = () if blocks is None else ("--blocks", blocks)
        return self._tare("--out", self.result, *words, without=VERDICT)

    def _tare(self, *words: object, without: str | None) -> Done:
        left_out = nullcontext() if without is None else patch(without)
        with chdir(self.folder), left_out:
            return tare("run", self.plan, *words)

    @property
    def manifest(self) -> dict[str, Any]:
        return dict(json.loads((self.result / "manifest.json").read_text()))

    def runs(self, condition: str) -> list[dict[str, Any]]:
        """The manifest's entries of one condition."""
        return [run for run in self.manifest["runs"] if run["condition"] == condition]

    def hold_after(self, starts: int) -> None:
        """Lets what has `HELD` before it start so many times from now on, and holds the next."""
        (self.folder / "starts").write_text("")
        (self.folder / "hold").write_text(str(starts))

    def release(self) -> None:
        """Lets everything start."""
        (self.folder / "hold").unlink()

    def wait_until_held(self, process: "subprocess.Popen[str]") -> None:
        """Waits until a start is held: the experiment goes no further, however long this takes."""
        allowed = int((self.folder / "hold").read_text())

        def held() -> bool:
            assert process.poll() is None, process.communicate()
            return len((self.folder / "starts").read_text()) > allowed

        wait_for(held)


def family(process: "subprocess.Popen[str]") -> dict[int, str]:
    """The descendants of a process, with what tells each from a later one with the same id."""
    found = {pid: born(pid) for pid in descendants(process.pid)}
    return {pid: ticks for pid, ticks in found.items() if ticks}  # some end between two looks


def born(pid: int) -> str:
    """When a process began, in ticks; empty when there is none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def command_line(pid: int) -> str:
    """A process's command line; empty when it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def none_left(pids: dict[int, str]) -> bool:
    """Whether all of these processes have ended."""
    return all(born(pid) != ticks for pid, ticks in pids.items())


def held_in(experiment: Experiment, environments: str) -> "subprocess.Popen[str]":
    """A `tare run` in environments (TOML of the plan's top level), while a service waits there."""
    hold = '{ type = "wrap", command = ["sh", "-c", "echo held; sleep 600"] }'
    experiment.write_plan(top=environments, load=OWN_LOAD, layers=hold, patience="600s")
    process = experiment.start("--out", str(experiment.result), "--blocks", "1")
    logs = experiment.result / "logs"
    wait_for(lambda: any(log.read_text() == "held\n" for log in logs.rglob("two*.log")))
    return process


def kill_everything(process: "subprocess.Popen[str]") -> dict[int, str]:
    """Kills a `tare run`, its supervisor and its guard at one instant; returns its family."""
    everything = family(process)
    supervisors = [pid for pid in everything if re.search("supervisor|guard", command_line(pid))]
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in (*supervisors, process.pid):
            os.kill(pid, number)
    process.communicate()
    return everything


@pytest.fixture
def experiment(tmp_path: Path) -> Iterator[Experiment]:
    """An experiment whose processes end with the test."""
    if shutil.which("nginx") is None:
        pytest.skip("nginx is not installed")
    if not Path(native("bin", "tare-load")).exists():
        pytest.skip("tare-load is not built")
    experiment = Experiment(tmp_path)
    yield experiment
    for process in experiment.started:
        if process.poll() is None:
            process.kill()
        process.communicate()


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    """Keeps what a test starts without an experiment, and ends it with the test."""
    with Processes(tmp_path / "supervisor.log") as held:
        yield held


@pytest.fixture
def quota() -> Iterator[Path]:
    """A control group that may use a hundredth of one CPU."""
    version_1 = Path("/sys/fs/cgroup/cpu")
    group = (version_1 if version_1.is_dir() else Path("/sys/fs/cgroup")) / f"quota-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made: {error}")
    try:
        if version_1.is_dir():
            (group / "cpu.cfs_quota_us").write_text("1000")
        else:
            (group / "cpu.max").write_text("1000 100000")
        yield group
    except OSError as error:
        pytest.skip(f"no CPU quota can be set: {error}")
    finally:
        group.rmdir()
