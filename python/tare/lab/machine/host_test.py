# SPDX-License-Identifier: Apache-2.0
"""Recorded contents of /proc and /sys, and those of this host."""

from pathlib import Path

import pytest

from tare.lab.machine.fingerprint import cpu_ticks
from tare.lab.machine.host import Host
from tare.lab.machine.snapshot import Snapshot

STAT = """\
cpu  100 20 30 400 5 6 7 8 9 10
cpu0 100 20 30 400 5 6 7 8 9 10
intr 1234 0 9 0 0
ctxt 5678
btime 1700000000
"""
MEMINFO = """\
MemTotal:       1000 kB
MemFree:         100 kB
MemAvailable:    600 kB
Buffers:          10 kB
Cached:          200 kB
SwapCached:        1 kB
Slab:             50 kB
PageTables:        5 kB
HugePages_Total:   0
"""
NET = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop
    lo: 7 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0
  eth0:100 1 0 0 0 0 0 0 200 1 0 0 0 0 0 0
 veth1: 50 1 0 0 0 0 0 0 60 1 0 0 0 0 0 0
"""
PSI = "some avg10=0.00 avg60=0.00 total={}\nfull avg10=0.00 avg60=0.00 total=2\n"


def put(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    put(tmp_path, {
        "proc/stat": STAT, "proc/meminfo": MEMINFO, "proc/net/dev": NET,
        **{f"proc/pressure/{name}": PSI.format(3) for name in ("cpu", "io", "memory")},
        "sys/class/net/eth0/device/vendor": "0x1af4",
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq": "2000000",
        "sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq": "3000000",
        "sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count": "4",
    })  # fmt: skip
    return tmp_path


def host(root: Path) -> Host:
    return Host([0, 1], root / "proc", root / "sys")


def values(of: Host) -> dict[str, float]:
    """All that a host shows now, without its clock."""
    snapshot = Snapshot()
    of.read(snapshot)
    found = {metric: float(value) for (metric, _), value in snapshot.counters.items()}
    found |= snapshot.levels
    return {metric: value for metric, value in found.items() if not metric.startswith("clock_")}


def test_recorded_contents_give_their_metrics(recorded: Path) -> None:
    tick = 10_000_000
    assert values(host(recorded)) == {
        "cpu_user": 120 * tick, "cpu_system": 30 * tick, "cpu_idle": 400 * tick,
        "cpu_iowait": 5 * tick, "cpu_irq": 13 * tick, "steal": 8 * tick,
        "interrupts": 1234, "context_switches": 5678,
        "memory_total": 1000 * 1024, "memory_used": 400 * 1024,
        "memory_applications": 634 * 1024,
        "network_loopback": 7, "network_received": 100, "network_transmitted": 200,
        "pressure_cpu": 3000, "pressure_io": 3000, "pressure_io_full": 2000,
        "pressure_memory": 3000, "pressure_memory_full": 2000,
        "frequency": 2.5e9, "thermal_throttles": 4,
    }  # fmt: skip


def test_a_host_without_any_file_has_no_metric(tmp_path: Path) -> None:
    assert values(host(tmp_path)) == {}


@pytest.mark.parametrize("text", ["", "\n", "cpu", "cpu x y\n", "intr\nctxt\n"])
def test_an_odd_file_leaves_the_others(recorded: Path, text: str) -> None:
    for name in ("proc/stat", "proc/net/dev", "proc/pressure/io"):
        (recorded / name).write_text(text)
    found = values(host(recorded))
    assert "cpu_user" not in found
    assert "network_received" not in found
    assert "pressure_io" not in found
    assert found["memory_total"] == 1000 * 1024
    assert found["pressure_memory"] == 3000


def test_a_kernel_of_few_fields_has_those(recorded: Path) -> None:
    (recorded / "proc/meminfo").write_text("MemTotal: 1000 kB\nMemFree: 1 kB\n")
    found = values(host(recorded))
    assert found["memory_total"] == 1000 * 1024
    assert "memory_used" not in found


def test_a_cpu_that_goes_offline_leaves_the_others(recorded: Path) -> None:
    machine = host(recorded)
    (recorded / "sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq").unlink()
    assert values(machine)["frequency"] == 2e9


def test_without_devices_as_in_a_container_every_interface_counts(recorded: Path) -> None:
    (recorded / "sys/class/net/eth0/device/vendor").unlink()
    (recorded / "sys/class/net/eth0/device").rmdir()
    snapshot = Snapshot()
    host(recorded).read(snapshot)
    of = {of for metric, of in snapshot.counters if metric == "network_received"}
    assert of == {(None, b"eth0"), (None, b"veth1")}


def test_an_interface_that_is_added_or_removed_changes_no_count(recorded: Path) -> None:
    machine, before, after = host(recorded), Snapshot(), Snapshot()
    (recorded / "sys/class/net/eth1/device").mkdir(parents=True)
    machine.read(before)
    text = NET.replace("eth0:100", "eth0:130").replace("veth1: 50", " eth1: 5000")
    (recorded / "proc/net/dev").write_text(text)
    machine.read(after)
    assert after.since(before)["network_received"] == 30
    (recorded / "proc/net/dev").write_text(NET.replace("eth0:100", "eth7:900"))
    last = Snapshot()
    machine.read(last)
    assert "network_received" not in last.since(after)


def test_few_cpus_of_many_are_read(recorded: Path) -> None:
    folder = recorded / "sys/devices/system/cpu"
    for cpu in range(100):
        put(folder, {f"cpu{cpu}/cpufreq/scaling_cur_freq": "1000"})
    many = Host(range(100), recorded / "proc", recorded / "sys")
    assert len(many._frequencies) == 8


def test_this_host_shows_what_every_linux_shows() -> None:
    before, after = Snapshot(), Snapshot()
    ticks = cpu_ticks()[0]
    machine = Host([0])
    machine.read(before)
    machine.read(after)
    later = cpu_ticks()[0]
    grown = after.since(before)
    assert {"cpu_user", "steal", "context_switches", "interrupts", "memory_used"} <= set(grown)
    assert 0 < grown["memory_applications"] < grown["memory_total"]
    cpu = ("cpu_user", "cpu_system", "cpu_idle", "cpu_iowait", "cpu_irq", "steal")
    whole = sum(value for (metric, _), value in after.counters.items() if metric in cpu)
    assert ticks - 2 <= whole / 1e7 <= later + 2  # idle and iowait can go back by a tick
