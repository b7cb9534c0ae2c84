# SPDX-License-Identifier: Apache-2.0
import json
import os
import subprocess
import time
from pathlib import Path

from tare.lab.processes.supervisor import Cgroups, Supervisor, descendants, tree_cpu_ns

BUSY = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"


def test_without_cgroups_an_ended_command_has_its_cpu_time_still(tmp_path: Path) -> None:
    events, tells = os.pipe()
    supervisor = Supervisor(-1, tells)
    supervisor.cgroups = None
    supervisor.do_start(
        name="busy",
        command=["sh", "-c", BUSY],
        directory=str(tmp_path),
        environment=dict(os.environ),
        log=str(tmp_path / "log"),
        output=None,
        cpus=sorted(os.sched_getaffinity(0)),
        stop_signal="TERM",
        grace_s=1,
    )
    while supervisor.started["busy"].runs:
        time.sleep(0.01)
        supervisor.reap()
    supervisor.do_family("busy")
    os.close(tells)
    with os.fdopen(events) as told:
        last = [json.loads(line) for line in told][-1]
    assert (last["event"], last["pids"]) == ("family", [])
    assert last["cpu_ns"] > 0


def test_only_control_groups_of_dead_supervisors_are_removed(tmp_path: Path) -> None:
    dead = subprocess.Popen(["true"])
    dead.wait()
    left = tmp_path / f"tare-{dead.pid}-1"
    kept = [tmp_path / name for name in (f"tare-{dead.pid}-x", f"tare-{os.getpid()}-1", "tare-b-1")]
    for group in (left, *kept):
        group.mkdir()
    Cgroups("cgroup2", tmp_path).remove_what_the_dead_left()
    assert sorted(tmp_path.iterdir()) == sorted(kept)


def test_a_process_may_be_called_anything() -> None:
    rename = r'printf "a) b\377" >/proc/$$/comm; sleep 60; :'
    with subprocess.Popen(["sh", "-c", rename], start_new_session=True) as oddly_named:
        try:
            comm = Path(f"/proc/{oddly_named.pid}/comm")
            while comm.read_bytes() != b"a) b\xff\n":
                time.sleep(0.01)
            assert descendants(os.getpid())[oddly_named.pid] == (os.getpid(), oddly_named.pid)
            assert tree_cpu_ns([oddly_named.pid]) >= 0
        finally:
            os.killpg(oddly_named.pid, 9)
