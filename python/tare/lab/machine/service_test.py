# SPDX-License-Identifier: Apache-2.0
"""Control groups of both versions and processes, recorded in folders of their form, and real."""

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tare.lab.machine import saturation
from tare.lab.machine.service import Service
from tare.lab.machine.snapshot import Snapshot

PAGE = os.sysconf("SC_PAGE_SIZE")
STAT = "{pid} (a) b) S 1 1 1 0 -1 0 0 0 0 0 {user} 3 2 1 20 0 1 0 {start} 0 0\n"


def put(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def process(
    root: Path, pid: int, *, user: int = 5, start: int = 99, network: str = "net:[1]"
) -> None:
    """Records a process."""
    put(root, {
        f"{pid}/stat": STAT.format(pid=pid, user=user, start=start), f"{pid}/statm": "90 30 10 1 0",
        f"{pid}/task/{pid}/children": "",
        f"{pid}/net/dev": "a\nb\n lo: 3 0 0 0 0 0 0 0 3\neth0: 8 0 0 0 0 0 0 0 9\n",
    })  # fmt: skip
    (root / str(pid) / "ns").mkdir(exist_ok=True)
    (root / str(pid) / "ns/net").symlink_to(network)


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """Tare itself, without control groups, and a service of one process 7."""
    (tmp_path / "self/ns").mkdir(parents=True)
    (tmp_path / "self/ns/net").symlink_to("net:[1]")
    process(tmp_path, 7)
    return tmp_path


def values(service: Service) -> dict[str, float]:
    snapshot = Snapshot()
    service.read(snapshot)
    found: dict[str, float] = {}
    for (metric, _), value in snapshot.counters.items():
        found[metric] = found.get(metric, 0) + value
    return found | snapshot.levels


def mounted(proc: Path, kind: str, options: str) -> Path:
    tree = proc / "tree" / (options or "unified")
    with (proc / "self/mountinfo").open("a") as file:
        file.write(f"31 23 0:38 / {tree} rw - {kind} {kind} rw,{options}\n")
    return tree


def test_processes_and_their_children_without_a_control_group(proc: Path) -> None:
    put(proc, {"7/task/7/children": "8 9 "})
    process(proc, 8)
    assert values(Service([7], proc)) == {
        "cpu_user": 2 * 7 * 10_000_000, "cpu_system": 2 * 4 * 10_000_000, "memory": 2 * 20 * PAGE,
    }  # fmt: skip


def test_a_service_that_has_ended_has_no_metric(proc: Path) -> None:
    assert values(Service([77], proc)) == {}


def test_a_later_process_with_the_same_id_adds_nothing(proc: Path) -> None:
    service, before, after = Service([7], proc), Snapshot(), Snapshot()
    service.read(before)
    put(proc, {"7/stat": STAT.format(pid=7, user=5000, start=100)})
    service.read(after)
    assert "cpu_user" not in after.since(before)


def test_version_2_also_counts_what_has_ended(proc: Path) -> None:
    tree = mounted(proc, "cgroup2", "")
    put(proc, {"self/cgroup": "0::/lab\n", "7/cgroup": "0::/lab/service\n"})
    put(tree, {
        "lab/service/cgroup.procs": "7\n77\n",
        "lab/service/cpu.stat": "usage_usec 9\nuser_usec 4\nsystem_usec 5\nthrottled_usec 6\n",
        "lab/cpu.stat": "usage_usec 900\nuser_usec 400\nsystem_usec 500\nthrottled_usec 10\n",
        "lab/service/io.pressure": "some avg10=1.00 total=70\nfull avg10=1.00 total=1\n",
        "lab/cpu.pressure": "some avg10=1.00 total=700\nfull avg10=1.00 total=1\n",
    })  # fmt: skip
    assert values(Service([7], proc)) == {
        "cpu_user": 4000, "cpu_system": 5000, "throttled_time": 16_000, "pressure_io": 70_000,
        "memory": 20 * PAGE,
    }  # fmt: skip


def test_name_of_a_control_group_may_have_the_end_of_a_line(proc: Path) -> None:
    tree, name = mounted(proc, "cgroup2", ""), "a\x1cb\u2028c"
    put(proc, {"self/cgroup": f"0::/{name}/tare\n", "7/cgroup": f"0::/{name}/service\n"})
    put(tree, {
        f"{name}/service/cgroup.procs": "7\n",
        f"{name}/service/cpu.stat": "usage_usec 9\nuser_usec 4\nsystem_usec 5\n",
    })  # fmt: skip
    assert values(Service([7], proc)) == {
        "cpu_user": 4000, "cpu_system": 5000, "memory": 20 * PAGE,
    }  # fmt: skip


def test_a_group_that_holds_tare_too_is_not_the_services(proc: Path) -> None:
    tree = mounted(proc, "cgroup2", "")
    put(proc, {"self/cgroup": "0::/lab/tare\n", "7/cgroup": "0::/lab\n"})
    put(tree, {
        "lab/cgroup.procs": "7\n77\n",
        "lab/cpu.stat": "usage_usec 900\nuser_usec 400\nsystem_usec 500\nthrottled_usec 10\n",
        "lab/cpu.pressure": "some avg10=1.00 total=700\nfull avg10=1.00 total=1\n",
    })  # fmt: skip
    assert values(Service([7], proc)) == {
        "cpu_user": 70_000_000, "cpu_system": 40_000_000, "throttled_time": 10_000,
        "memory": 20 * PAGE,
    }  # fmt: skip


def test_a_group_within_another_one_counts_once(proc: Path) -> None:
    tree = mounted(proc, "cgroup2", "")
    process(proc, 8)
    put(proc, {"self/cgroup": "0::/\n", "7/cgroup": "0::/a\n", "8/cgroup": "0::/a/b\n"})
    put(tree, {"a/cgroup.procs": "7\n", "a/cpu.stat": "user_usec 9\nsystem_usec 5\n"})
    put(tree, {"a/b/cgroup.procs": "8\n", "a/b/cpu.stat": "user_usec 4\nsystem_usec 5\n"})
    assert values(Service([7, 8], proc)) == {
        "cpu_user": 9000, "cpu_system": 5000, "memory": 2 * 20 * PAGE,
    }  # fmt: skip


def test_version_1_has_nanoseconds(proc: Path) -> None:
    tree = mounted(proc, "cgroup", "cpuacct")
    mounted(proc, "cgroup2", "")
    put(proc, {"self/cgroup": "2:cpuacct:/\n0::/\n", "7/cgroup": "2:cpuacct:/one\n0::/\n"})
    put(tree, {"one/cpuacct.usage_user": "41\n", "one/cpuacct.usage_sys": "52\n"})
    put(tree, {"one/cgroup.procs": "7\n"})
    assert values(Service([7], proc)) == {
        "cpu_user": 41, "cpu_system": 52, "memory": 20 * PAGE,
    }  # fmt: skip


def test_a_group_that_is_removed_leaves_no_metric(proc: Path) -> None:
    tree = mounted(proc, "cgroup2", "")
    put(proc, {"self/cgroup": "0::/\n", "7/cgroup": "0::/a\n"})
    put(tree, {"a/cgroup.procs": "7\n", "a/cpu.stat": "user_usec 4\nsystem_usec 5\n"})
    service = Service([7], proc)
    assert values(service)["cpu_user"] == 4000
    for file in (tree / "a").iterdir():
        file.unlink()
    assert values(service) == {}


def test_traffic_is_that_of_a_network_of_its_own(proc: Path) -> None:
    process(proc, 8, network="net:[2]")
    traffic = {"network_loopback": 3, "network_received": 8, "network_transmitted": 9}
    service = Service([7, 8], proc)
    assert values(service).items() >= traffic.items()
    (proc / "8/ns/net").unlink()  # it has ended
    (proc / "8/ns/net").symlink_to("net:[3]")  # and another process has its id
    assert not values(service).keys() & traffic.keys()
    assert not values(Service([7], proc)).keys() & traffic.keys()


def test_traffic_of_a_guest_is_that_of_its_interface_from_the_other_end(proc: Path) -> None:
    table = "a\nb\ntare7v1: 5 0 0 0 0 0 0 0 6\ntare7v2: 1 0 0 0 0 0 0 0 1\n"
    put(proc, {"self/net/dev": table})
    found = values(Service([7], proc, ["tare7v1"]))
    assert (found["network_received"], found["network_transmitted"]) == (6, 5)


def test_traffic_is_the_sum_over_the_networks_of_the_services(proc: Path) -> None:
    for pid, network in ((8, "net:[2]"), (9, "net:[3]"), (10, "net:[3]")):
        process(proc, pid, network=network)
    service = Service([7, 8, 9, 10], proc)
    both = {"network_loopback": 6, "network_received": 16, "network_transmitted": 18}
    assert values(service).items() >= both.items()
    before, after = Snapshot(), Snapshot()
    service.read(before)
    (proc / "8/ns/net").unlink()  # the first network has ended
    put(proc, {f"{pid}/net/dev": "a\nb\neth0: 12 0 0 0 0 0 0 0 9\n" for pid in (9, 10)})
    service.read(after)
    assert after.since(before)["network_received"] == 4


@pytest.mark.parametrize("name", ["stat", "statm", "net/dev"])
@pytest.mark.parametrize("text", ["", "7", "x y z", "0::\n\n"])
def test_odd_files_end_nothing(proc: Path, name: str, text: str) -> None:
    (proc / "7/ns/net").unlink()
    (proc / "7/ns/net").symlink_to("net:[2]")
    put(proc, {f"7/{name}": text})
    values(Service([7], proc))


def test_what_holds_a_service_back_is_as_strain_reads_it() -> None:
    def of(pids: Iterable[int]) -> dict[str, int]:
        return dict(saturation.read(saturation.Groups.of(pids)).counters)

    me = os.getpid()
    before, found, after = of([me]), values(Service([me])), of([me])
    for metric in ("throttled_time", "oom_kills"):
        if metric in before:
            assert before[metric] <= found[metric] <= after[metric]
        else:
            assert metric not in found


def test_a_real_process_uses_cpu_time_and_memory() -> None:
    busy = "x = bytearray(30 << 20)\nprint(flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", busy], stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        running.stdout.readline()
        service = Service([running.pid])
        first = values(service)
        while values(service)["cpu_user"] < first["cpu_user"] + 50_000_000:
            pass
        running.kill()
    assert first["memory"] > 30 << 20
    assert "network_received" not in first
    assert values(service).keys() <= {"throttled_time", "oom_kills"}
