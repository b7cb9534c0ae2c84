# SPDX-License-Identifier: Apache-2.0
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tare.lab.environments.launch import RunError
from tare.lab.layers import map as map_layer
from tare.lab.processes.processes import Family, Process, Processes, StartError
from tare.lab.start.agents import Agent, AgentError
from tare.plan.schema.layers import AgentLayer, MapLayer

Script = Callable[["Machine", Path], int | None]
"""What a program does when it is started: it may write to its log; its code, None while it runs."""


class Machine(Processes):
    """Programs and a clock that exist in memory: waiting moves the clock on."""

    def __init__(self, **programs: Script) -> None:
        self.programs = programs
        self.now = 0.0
        self.up: dict[str, str] = {}
        self.kept: set[str] = set()
        self.history: list[str] = []
        self.undo: list[Any] = []

    def start(self, name: str, command: Sequence[str], **how: Any) -> Process:
        if command[0] not in self.programs:
            raise StartError(f"{command[0]}: No such file or directory")
        assert name not in self.up
        self.up[name] = command[0]
        self.history.append(" ".join(command))
        self.undo.append(how.get("undo"))
        process = Process(name, 1)
        process.code = self.programs[command[0]](self, how["log"])
        return process

    def stop(self, processes: Sequence[Process], *, keep: bool = False) -> None:
        for process in processes:
            is_agent = self.up[process.name] == "agent"
            if is_agent and process.name not in self.kept:
                self.history.append("signal")
            if keep:
                self.kept.add(process.name)
            else:
                del self.up[process.name]

    def wait(self, timeout_s: float) -> None:
        self.now += timeout_s

    def family(self, _process: Process) -> Family:
        return Family([1], 7)


def runs(*lines: str) -> Script:
    return ends(None, *lines)


def ends(code: int | None, *lines: str) -> Script:
    def script(_machine: Machine, log: Path) -> int | None:
        log.write_text("".join(f"{line}\n" for line in lines))
        return code

    return script


def make(machine: Machine, folder: Path, monkeypatch: pytest.MonkeyPatch, **keys: Any) -> Agent:
    monkeypatch.setattr(time, "monotonic", lambda: machine.now)
    layer = AgentLayer.model_validate(
        {"type": "agent", "name": "probe", "start": "agent {log} {name}", **keys}
    )
    log = folder / "probe.log"
    return Agent(layer, "unique", machine, [0], log, lambda: folder, {})


def test_it_is_on_when_its_ready_command_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def at_the_third_time(machine: Machine, _log: Path) -> int:
        return 0 if machine.history.count("ready") == 3 else 1

    machine = Machine(agent=runs(), ready=at_the_third_time)
    agent = make(machine, tmp_path, monkeypatch, ready="ready")
    agent.switch_on()
    assert agent.cpu_ns() == 7
    agent.check_ready()
    agent.switch_off()
    start = f"agent {tmp_path}/probe.log unique-1"
    assert machine.history == [start, "ready", "ready", "ready", "signal"]
    assert machine.up == {}


def test_each_turn_has_a_name_and_a_log_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs: list[str] = []

    def reading(_machine: Machine, log: Path) -> None:
        logs.append(log.read_text())
        log.write_text("attached\n")

    machine = Machine(agent=reading)
    agent = make(machine, tmp_path, monkeypatch)
    for _ in range(2):
        agent.switch_on()
        agent.switch_off()
    assert [line for line in machine.history if line != "signal"] == [
        f"agent {tmp_path}/probe.log unique-{turn}" for turn in (1, 2)
    ]
    assert logs == ["", ""]


@pytest.mark.parametrize(
    ("says", "ready", "message"),
    [
        (("starting", "no BTF in this kernel"), (), "not ready within 30 s: no BTF in this kernel"),
        ((), ("connection refused",), "not ready within 30 s: connection refused"),
        ((), (), "not ready within 30 s; {folder}/probe.log is empty"),
    ],
)
def test_one_that_never_is_ready_is_quoted(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    says: tuple[str, ...],
    ready: tuple[str, ...],
    message: str,
) -> None:
    machine = Machine(agent=runs(*says), ready=ends(1, *ready))
    agent = make(machine, tmp_path, monkeypatch, ready="ready")
    with pytest.raises(AgentError) as caught:
        agent.switch_on()
    assert str(caught.value) == "probe: " + message.format(folder=tmp_path)
    agent.switch_off()
    assert machine.up == {}


def test_a_ready_command_that_hangs_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(agent=runs(), ready=runs("waiting"))
    agent = make(machine, tmp_path, monkeypatch, ready="ready", timeout="3s")
    with pytest.raises(AgentError, match="probe: not ready within 3 s: waiting"):
        agent.switch_on()
    assert machine.now < 4
    agent.switch_off()
    assert machine.up == {}


def test_one_that_ends_before_it_is_ready_is_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(agent=ends(3, "unknown probe"), ready=ends(1))
    agent = make(machine, tmp_path, monkeypatch, ready="ready")
    with pytest.raises(AgentError) as caught:
        agent.switch_on()
    assert str(caught.value) == "probe: exited with code 3 before it was ready: unknown probe"
    agent = make(Machine(), tmp_path, monkeypatch)
    with pytest.raises(AgentError, match="probe: agent: No such file"):
        agent.switch_on()


def test_one_that_ends_in_its_turn_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = make(Machine(agent=runs("ring is full")), tmp_path, monkeypatch)
    agent.switch_on()
    assert agent.process is not None
    agent.process.code = -9
    with pytest.raises(AgentError, match="probe: was killed by SIGKILL: ring is full"):
        agent.check_ready()


def test_one_that_runs_elsewhere_is_asked_again_and_stopped_by_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [0, 0, 1]
    machine = Machine(agent=ends(0), ready=lambda *_: answers.pop(0), stop=ends(0))
    agent = make(machine, tmp_path, monkeypatch, ready="ready", stop="stop {name}")
    agent.switch_on()
    assert machine.undo[0] == ["stop", "unique-1"]
    agent.check_ready()
    assert agent.cpu_ns() is None
    with pytest.raises(AgentError, match="probe: no longer ready at the end of its turn"):
        agent.check_ready()
    agent.switch_off()
    assert machine.history[-2:] == ["stop unique-1", "signal"]


def test_one_that_cannot_be_stopped_stops_the_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(agent=ends(0), ready=ends(0), stop=ends(5, "no such unit"))
    agent = make(machine, tmp_path, monkeypatch, ready="ready", stop="stop")
    agent.switch_on()
    with pytest.raises(RunError) as caught:
        agent.switch_off()
    assert not isinstance(caught.value, AgentError)
    assert str(caught.value) == "probe: its stop command exited with code 5: no such unit"
    assert machine.up == {}


def test_a_stop_command_that_does_not_start_stops_the_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(agent=ends(0), ready=ends(0))
    agent = make(machine, tmp_path, monkeypatch, ready="ready", stop="stop")
    agent.switch_on()
    with pytest.raises(RunError) as caught:
        agent.switch_off()
    assert not isinstance(caught.value, AgentError)
    why = "its stop command did not start: stop: No such file or directory"
    assert str(caught.value) == f"probe: {why}"
    assert machine.up == {}


def test_one_that_never_was_on_may_have_nothing_to_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(agent=ends(1, "no image"), ready=ends(1), stop=ends(5, "no such container"))
    agent = make(machine, tmp_path, monkeypatch, ready="ready", stop="stop")
    with pytest.raises(AgentError, match="probe: exited with code 1 before it was ready: no image"):
        agent.switch_on()
    agent.switch_off()
    assert machine.up == {}


@pytest.mark.parametrize("start", [0, None], ids=["in the background", "that still works"])
def test_one_that_may_run_and_cannot_be_stopped_stops_the_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: int | None
) -> None:
    machine = Machine(agent=ends(start), ready=ends(1), stop=ends(5, "no such unit"))
    agent = make(machine, tmp_path, monkeypatch, ready="ready", stop="stop")
    with pytest.raises(AgentError, match="probe: not ready within 30 s"):
        agent.switch_on()
    with pytest.raises(RunError, match="probe: its stop command exited with code 5: no such unit"):
        agent.switch_off()
    assert machine.up == {}


def test_a_start_that_still_works_ends_before_the_stop_command_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(agent=runs("pulling"), ready=ends(1), stop=ends(0))
    agent = make(machine, tmp_path, monkeypatch, ready="ready", stop="stop")
    with pytest.raises(AgentError, match="probe: not ready within 30 s: pulling"):
        agent.switch_on()
    agent.switch_off()
    assert machine.history[-2:] == ["signal", "stop"]
    assert machine.up == {}


def test_the_map_is_an_agent_with_readings_at_every_interval() -> None:
    keys = {"interval": "500ms", "max_edges": 10, "method": "poll"}
    layer = MapLayer.model_validate({"type": "map", **keys})
    found = map_layer.agent(layer)
    assert found.start[1:] == [
        *["--jsonl", "--interval", "500ms", "--max-edges", "10"],
        *["--method", "poll"],
    ]
    assert (found.name, found.stop_signal, found.stop) == ("map", "INT", None)
