# SPDX-License-Identifier: Apache-2.0
"""However tare ends, nothing that it started lives on, and no finished block is lost."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.changing_folders import matches
from tests.lab.conftest import HELD, HOLD, Experiment, command_line, family, none_left
from tests.rights import may_make_namespaces
from tests.waiting import SECONDS, wait_for

from tare.lab.processes.supervisor import send
from tare.running.created_resources import Made, made_things, remove_abandoned

LOAD = 'warmup = "50ms"\nduration = "100ms"\n'
# A daemon that leaves its parent, its session and its group, and does not mind SIGTERM.
STRAY = (
    '{ type = "wrap", command = ["sh", "-c",'
    ' \'setsid env --ignore-signal=TERM sleep 600 & exec "$@"\', "sh"] }'
)


def contents(folder: Path) -> dict[str, bytes]:
    """All Parquet files of a result."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.parquet")}


def check_resume(experiment: Experiment, kept: dict[str, bytes]) -> None:
    """Finishes what is missing, and nothing else."""
    before = experiment.manifest["runs"]
    experiment.release()
    process = experiment.start("--resume", str(experiment.result))
    _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, errors
    manifest = experiment.manifest
    assert [run["run"] for run in manifest["runs"]] == list(range(1, 10))
    assert manifest["runs"][: len(before)] == before
    assert all(run["valid"] for run in manifest["runs"])
    assert manifest["finished"]
    after = contents(experiment.result)
    assert kept.items() <= after.items()
    assert sum(name.startswith("samples/") for name in after) == 9
    assert not list(experiment.result.rglob("*.new"))


def test_ctrl_c_stops_everything_and_resume_goes_on(experiment: Experiment) -> None:
    experiment.write_plan(load=LOAD, layers=HOLD)
    experiment.hold_after(1)
    process = experiment.start("--out", str(experiment.result), "--blocks", "3")
    experiment.wait_until_held(process)
    started = family(process)
    os.killpg(process.pid, signal.SIGINT)  # what a terminal does
    _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 130
    assert none_left(started)
    last = errors.splitlines()[-1]
    assert f"--resume {experiment.result}" in last
    assert len(experiment.manifest["runs"]) == 3
    check_resume(experiment, contents(experiment.result))


@pytest.mark.exhaustive
def test_what_was_begun_without_a_control_goes_on_without(experiment: Experiment) -> None:
    experiment.write_plan(top="control = false", load=LOAD)
    assert experiment.measure(blocks=2).returncode == 0
    begun = experiment.manifest
    del begun["control"], begun["limits"], begun["smoke"], begun["looks"]
    begun["runs"] = [run for run in begun["runs"] if run["block"] == 1]
    (experiment.result / "manifest.json").write_text(json.dumps(begun))
    for block in experiment.result.glob("*/condition=*/block=2"):
        shutil.rmtree(block)
    for plan in (experiment.plan, experiment.result / "plan.toml"):
        plan.write_text(plan.read_text().replace("control = false", ""))
    process = experiment.start("--resume", str(experiment.result))
    _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, errors
    manifest = experiment.manifest
    assert manifest["control"] is None
    assert [run["run"] for run in manifest["runs"]] == [1, 2, 3, 4]
    assert {run["condition"] for run in manifest["runs"]} == {"one", "two"}


def held_under_load(experiment: Experiment) -> "subprocess.Popen[str]":
    """`tare run` in its second block: two nginx, a daemon, and a load that does not begin."""
    generator = [*HELD, sys.executable, str(Path(__file__).with_name("foreign_load.py"))]
    load = {"command": [*generator, "{url}", "{output}"], "output": "stats.csv"}
    keys = "".join(f"{key} = {json.dumps(value)}\n" for key, value in load.items())
    experiment.write_plan(
        load=f'type = "command"\nformat = "locust"\n{keys}', service='stop_timeout = "500ms"'
    )
    text = experiment.plan.read_text().replace('name = "one"', 'name = "one"\nlayers = []')
    experiment.plan.write_text(text.replace("layers = []", f"layers = [{STRAY}]"))
    experiment.hold_after(2)
    process = experiment.start("--out", str(experiment.result), "--blocks", "3")
    experiment.wait_until_held(process)
    return process


def test_kill_9_of_tare_leaves_no_process_and_whole_files(experiment: Experiment) -> None:
    process = held_under_load(experiment)
    started = family(process)
    assert len(started) >= 6  # guard, supervisor, nginx of two processes, the daemon, the load
    process.kill()
    wait_for(lambda: none_left(started))
    process.communicate()
    assert len(experiment.manifest["runs"]) == 2
    check_resume(experiment, contents(experiment.result))


def pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]


def network_of(pid: int) -> str | None:
    """The network namespace of a process, if it has not ended."""
    with suppress(OSError):
        return str(Path(f"/proc/{pid}/ns/net").readlink())
    return None


def kill(process: "subprocess.Popen[str]") -> None:
    process.kill()


def kill_all_at_once(process: "subprocess.Popen[str]") -> None:
    """All whose words have `tare` in them, as `pkill -9 -f tare` does."""
    started = family(process)
    marked = [pid for pid in started if "tare" in command_line(pid)]
    guard = [pid for pid in started if command_line(pid).startswith("guard of an experiment")]
    assert len(guard) == 1
    assert not set(guard) & set(marked)
    send(signal.SIGSTOP, marked)  # so that none can react to the death of another
    process.kill()
    send(signal.SIGKILL, marked)


@pytest.mark.parametrize("settings", ["", ', delay = "1ms"'])
@pytest.mark.parametrize("kill", [kill, kill_all_at_once])
def test_kill_9_removes_network_namespaces(
    kill: Callable[["subprocess.Popen[str]"], None], settings: str, experiment: Experiment
) -> None:
    if not may_make_namespaces():
        pytest.skip("a network namespace needs root")
    top = f'environments = [{{ type = "netns"{settings} }}]'
    experiment.write_plan(top=top, load=LOAD, layers=HOLD)
    experiment.hold_after(0)
    process = experiment.start("--out", str(experiment.result), "--blocks", "1")
    experiment.wait_until_held(process)
    started = family(process)

    def interfaces() -> list[Path]:
        return [*Path("/sys/class/net").glob(f"tare{process.pid}-*")]

    def relays() -> list[Made]:
        return [made for made in made_things() if made.owner == process.pid]

    assert interfaces()
    assert {made.type for made in relays()} == ({"relay"} if settings else set())
    namespaces = set(map(network_of, started)) - {network_of(os.getpid()), None}
    assert namespaces
    kill(process)
    wait_for(lambda: none_left(started))
    wait_for(lambda: not namespaces & set(map(network_of, pids())))
    wait_for(lambda: not interfaces())
    process.communicate()
    # Without a supervisor, the record waits for the next tare run or tare clean.
    [*remove_abandoned()]
    assert not relays()


@pytest.mark.exhaustive
def test_when_the_supervisor_is_killed_tare_stops_all_that_it_started(
    experiment: Experiment,
) -> None:
    service = 'stop_timeout = "500ms"'
    experiment.write_plan(load=LOAD, layers=f"{HOLD}, {STRAY}", service=service)
    experiment.hold_after(1)
    process = experiment.start("--out", str(experiment.result), "--blocks", "3")
    experiment.wait_until_held(process)
    started = family(process)
    # A child of it has the same words until it executes another program.
    named = (pid for pid in started if "supervisor.py" in command_line(pid))
    supervisor = min(named, key=lambda pid: int(started[pid]))
    os.kill(supervisor, signal.SIGKILL)
    _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 1
    assert "the supervisor ended early" in errors.splitlines()[-1]
    wait_for(lambda: none_left(started))
    check_resume(experiment, contents(experiment.result))
    assert not matches(Path("/sys/fs/cgroup"), f"**/tare-{supervisor}-*")


def test_tare_and_supervisor_that_are_killed_at_once_leave_nothing(
    experiment: Experiment,
) -> None:
    process = held_under_load(experiment)
    started = family(process)
    others = [pid for pid in started if "tare" not in command_line(pid)]
    assert len(others) >= 3  # the guard, the worker of nginx, the daemon
    kill_all_at_once(process)
    wait_for(lambda: none_left(started))
    process.communicate()
    check_resume(experiment, contents(experiment.result))


def test_runs_during_which_tare_was_stopped_are_invalid(experiment: Experiment) -> None:
    experiment.write_plan(load='warmup = "50ms"\nduration = "2s"\n')
    process = experiment.start("--out", str(experiment.result), "--blocks", "1")
    wait_for(lambda: any("tare-load" in command_line(pid) for pid in family(process)))
    everyone = [process.pid, *family(process)]
    for number in (signal.SIGSTOP, signal.SIGCONT):
        send(number, everyone)
    process.communicate(timeout=SECONDS)
    reasons = {run["reason"] for run in experiment.manifest["runs"]}
    assert reasons == {"tare was stopped and continued (SIGSTOP, Ctrl-Z) during the load"}


def test_resume_refuses_a_plan_that_is_not_text(experiment: Experiment) -> None:
    experiment.write_plan()
    experiment.result.mkdir()
    (experiment.result / "plan.toml").write_bytes(b"\xff")
    process = experiment.start("--resume", str(experiment.result))
    _, errors = process.communicate(timeout=SECONDS)
    file = experiment.result / "plan.toml"
    assert (process.returncode, errors) == (
        2,
        f"tare: {file}: not UTF-8; there is nothing to resume\n",
    )


def test_resume_refuses_another_plan(experiment: Experiment) -> None:
    experiment.write_plan()
    assert experiment.measure(blocks=1).returncode == 0
    experiment.write_plan(top='primary = "p99"')
    process = experiment.start("--resume", str(experiment.result))
    _, errors = process.communicate(timeout=SECONDS)
    assert process.returncode == 2
    assert "another 'primary'" in errors


def test_a_result_is_never_overwritten(experiment: Experiment) -> None:
    experiment.write_plan()
    assert experiment.measure(blocks=1).returncode == 0
    again = experiment.run("--blocks", "1")
    assert again.returncode == 2
    assert "is not empty" in again.stderr


def test_two_do_not_resume_one_result(experiment: Experiment) -> None:
    experiment.write_plan(load=LOAD, layers=HOLD)
    experiment.hold_after(1)
    first = experiment.start("--out", str(experiment.result), "--blocks", "3")
    experiment.wait_until_held(first)
    second = experiment.start("--resume", str(experiment.result))
    _, refusal = second.communicate(timeout=SECONDS)
    assert second.returncode == 2
    assert "another tare run uses this folder" in refusal
    experiment.release()
    _, errors = first.communicate(timeout=SECONDS)
    assert first.returncode == 0, errors
    assert all(run["valid"] for run in experiment.manifest["runs"])


def test_resume_refuses_another_machine_and_other_cpus(experiment: Experiment) -> None:
    experiment.write_plan()
    assert experiment.measure(blocks=1).returncode == 0
    begun = experiment.manifest
    for table, key, value in (("machine", "machine", "f00"), ("placement", "service", [4095])):
        changed = {**begun, table: {**begun[table], key: value}}
        (experiment.result / "manifest.json").write_text(json.dumps(changed))
        process = experiment.start("--resume", str(experiment.result))
        _, errors = process.communicate(timeout=SECONDS)
        assert process.returncode == 2
        assert f"{experiment.result}: began " in errors


def test_as_an_ordinary_user(experiment: Experiment) -> None:
    if os.geteuid() != 0:
        pytest.skip("all other tests run as an ordinary user already")
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed")
    nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", "-C", "/",
              "HOME=/tmp", f"PYTHONPATH={':'.join(filter(None, sys.path))}"]  # fmt: skip
    # The environment's own interpreter may lie in root's home; Debian's is the same version.
    interpreters = (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}")
    for python in interpreters:
        if subprocess.run([*nobody, python, "-c", "import tare.plan"], check=False).returncode == 0:
            break
    else:
        pytest.skip("an ordinary user may not read this clone, or no interpreter")
    # Every start of pytest closes the folder above its own to others.
    with TemporaryDirectory() as folder:
        experiment.folder = Path(folder)
        experiment.folder.chmod(0o1777)  # sticky, as /tmp: else anybody could change results
        experiment.write_plan()
        command = [*nobody, python, "-m", "tare", "run", str(experiment.plan), "--blocks", "1"]
        command += ["--out", str(experiment.result)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
        assert done.returncode == 0, done.stderr
        assert all(run["valid"] for run in experiment.manifest["runs"])
        assert (experiment.result / "manifest.json").stat().st_uid == 65534
