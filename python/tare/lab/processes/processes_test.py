# SPDX-License-Identifier: Apache-2.0
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tare.errors import TareError
from tare.lab.processes import processes
from tare.lab.processes.processes import Process, Processes, StartError, find
from tare.lab.processes.supervisor import set_subreaper

BUSY = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"


def test_a_command_that_ignores_its_stop_signal_has_all_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    with Processes(tmp_path / "supervisor.log") as held:
        stubborn = held.start(
            "stubborn",
            ["sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.2; done"],
            directory=tmp_path,
            log=log,
            cpus=sorted(os.sched_getaffinity(0)),
            grace_s=3,
        )
        while "up" not in log.read_text():
            held.wait(0.05)
        monkeypatch.setattr(processes, "ANSWER_LIMIT_S", 2.0)
        held.stop([stubborn])
        assert stubborn.ending == "was killed by SIGKILL"


@pytest.mark.parametrize("before", [False, True])
def test_orphans_of_others_come_to_this_process_as_before(tmp_path: Path, before: bool) -> None:
    at_first = set_subreaper(before)
    try:
        with Processes(tmp_path / "supervisor.log"):
            assert set_subreaper(True)
        assert set_subreaper(before) == before
    finally:
        set_subreaper(at_first)


def test_what_undoes_a_command_begins_when_the_command_has_ended(tmp_path: Path) -> None:
    order = tmp_path / "order"
    order.touch()
    # On its signal it goes on for a moment, as `docker run` does.
    start = "trap 'sleep 0.3; echo start >>order; exit' TERM; echo up >>order\n"
    start += "while :; do sleep 0.05; done"
    with Processes(tmp_path / "supervisor.log") as held:
        held.start(
            "agent",
            ["sh", "-c", start],
            directory=tmp_path,
            log=tmp_path / "log",
            cpus=sorted(os.sched_getaffinity(0)),
            undo=["sh", "-c", "echo undo >>order"],
        )
        while "up" not in order.read_text():
            held.wait(0.05)
    # A machine that is too slow kills the command before it goes on.
    assert order.read_text().split() in (["up", "start", "undo"], ["up", "undo"])


def test_a_command_that_was_stopped_can_still_be_undone(tmp_path: Path) -> None:
    with Processes(tmp_path / "supervisor.log") as held:
        for name in ("kept", "forgotten"):
            command = held.start(
                name,
                ["sleep", "60"],
                directory=tmp_path,
                log=tmp_path / "log",
                cpus=sorted(os.sched_getaffinity(0)),
                undo=["touch", f"{name} is undone"],
            )
            held.stop([command], keep=True)
            if name == "forgotten":
                held.stop([command])
    assert [path.name for path in tmp_path.glob("* is undone")] == ["kept is undone"]


def test_a_slow_end_keeps_no_other_command_waiting(tmp_path: Path) -> None:
    (tmp_path / "log").touch()
    with Processes(tmp_path / "supervisor.log") as held:

        def start(name: str, script: str) -> Process:
            cpus = sorted(os.sched_getaffinity(0))
            words = ["sh", "-c", script]
            return held.start(
                name, words, directory=tmp_path, log=tmp_path / "log", cpus=cpus, grace_s=1000
            )

        slow = start("slow", "trap '' TERM; echo up; while [ ! -e end ]; do sleep 0.05; done")
        while "up" not in (tmp_path / "log").read_text():
            held.wait(0.05)
        with ThreadPoolExecutor() as threads:
            stopping = threads.submit(held.stop, [slow])
            # It ends only when another command, which is started meanwhile, has run.
            held._tell(
                do="start",
                name="other",
                command=["touch", "end"],
                directory=str(tmp_path),
                environment=dict(os.environ),
                log=str(tmp_path / "log"),
                output=None,
                cpus=sorted(os.sched_getaffinity(0)),
                stop_signal="TERM",
                grace_s=1,
            )
            stopping.result()
        assert slow.ending == "exited with code 0"


LEFT_BY_ITS_FIRST_THREAD = """
import ctypes, os, pathlib, signal, threading, time

def end():
    print("up", flush=True)
    signal.sigwait({signal.SIGTERM})
    time.sleep(0.3)
    pathlib.Path("ended").touch()
    os._exit(0)

signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
threading.Thread(target=end).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def test_a_command_has_ended_when_its_last_thread_has(tmp_path: Path) -> None:
    with Processes(tmp_path / "supervisor.log") as held:
        command = held.start(
            "agent",
            [sys.executable, "-c", LEFT_BY_ITS_FIRST_THREAD],
            directory=tmp_path,
            log=tmp_path / "log",
            cpus=sorted(os.sched_getaffinity(0)),
            grace_s=1000,
        )
        stat = Path(f"/proc/{command.pid}/stat")
        while "up" not in (tmp_path / "log").read_text() or " Z " not in stat.read_text():
            held.wait(0.05)
        held.stop([command])
        assert (tmp_path / "ended").exists()
        assert command.ending == "exited with code 0"


def test_a_command_that_the_kernel_keeps_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Processes(tmp_path / "supervisor.log") as held:
        command = held.start(
            "perf",
            ["sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.05; done"],
            directory=tmp_path,
            log=tmp_path / "log",
            cpus=sorted(os.sched_getaffinity(0)),
            grace_s=1000,
        )
        while "up" not in (tmp_path / "log").read_text():
            held.wait(0.05)
        # As if its time to end were over: nothing here can hold what got SIGKILL.
        command.grace_s = 0
        monkeypatch.setattr(processes, "ANSWER_LIMIT_S", 0.1)
        with pytest.raises(TareError, match=rf"perf \(process {command.pid}\) does not end"):
            held.stop([command])


def test_a_command_that_no_system_can_start_is_an_error_of_its_own(tmp_path: Path) -> None:
    with Processes(tmp_path / "supervisor.log") as held:

        def start(name: str, *command: str, **variables: str) -> Process:
            cpus = sorted(os.sched_getaffinity(0))
            log = tmp_path / "log"
            return held.start(
                name, command, directory=tmp_path, log=log, cpus=cpus, environment=variables
            )

        with pytest.raises(StartError, match="true: illegal environment variable name"):
            start("one", "true", **{"A=B": "1"})
        with pytest.raises(StartError, match="true: embedded null byte"):
            start("two", "true", A="\0")
        held.stop([start("three", "sleep", "60")])


def test_the_cpu_time_of_a_command_is_that_of_one_start(tmp_path: Path) -> None:
    used = []
    with Processes(tmp_path / "supervisor.log") as held:
        for script in (BUSY, "exit"):
            process = held.start(
                "load",
                ["sh", "-c", script],
                directory=tmp_path,
                log=tmp_path / "log",
                cpus=sorted(os.sched_getaffinity(0)),
            )
            while process.code is None:
                held.wait(0.05)
            used.append(held.family(process).cpu_ns)
            held.stop([process])
    assert 0 < used[1] < used[0] / 2, used


def test_system_folders_are_searched_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert find("ldconfig") is not None
    assert find("no-such-program") is None


def test_what_is_beside_the_interpreter_is_found_behind_other_words_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "only-beside-it"
    program.write_text("#!/bin/sh\nexit 7\n")
    program.chmod(0o755)
    with Processes(tmp_path / "supervisor.log") as held:
        monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
        assert find(program.name) == str(program)
        process = held.start(
            "wrapped",
            ["env", program.name],
            directory=tmp_path,
            log=tmp_path / "log",
            cpus=sorted(os.sched_getaffinity(0)),
        )
        while process.code is None:
            held.wait(0.05)
        assert process.ending == "exited with code 7"


def test_every_ending_has_words() -> None:
    assert Process("one", 1, -9).ending == "was killed by SIGKILL"
    assert Process("one", 1, -(signal.SIGRTMIN + 1)).ending == "was killed by signal 35"
