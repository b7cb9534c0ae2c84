# SPDX-License-Identifier: Apache-2.0
"""Control groups and pressure as kernels of both versions show them, in folders of their form."""

import shutil
from pathlib import Path

from tare.lab.machine.saturation import Groups, Saturation, Watch, notes, read

SECOND = 1_000_000_000


def put(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def version_2(tmp_path: Path, **files: str) -> Path:
    """A process 7 in /pod/service of a tree mounted from /pod on, as in a container."""
    tree = tmp_path / "tree"
    put(
        tmp_path,
        {
            "self/mountinfo": f"31 23 0:38 /pod {tree} rw,relatime shared:5 - cgroup2 cgroup2 rw\n",
            "7/cgroup": "0::/pod/service\n",
            "pressure/memory": "some avg10=0 avg60=0 avg300=0 total=9000\nfull total=1\n",
            "tree/cpu.stat": "usage_usec 5\nnr_throttled 1\nthrottled_usec 300\n",
            "tree/service/cpu.stat": "nr_throttled 4\nthrottled_usec 20\n",
            "tree/memory.events": "oom_kill 50\n",
            "tree/service/memory.events": "low 0\noom 3\noom_kill 2\noom_group_kill 0\n",
            "tree/service/io.pressure": "some avg10=1.00 total=70\nfull avg10=1.00 total=1\n",
        }
        | {f"tree/service/{name}": text for name, text in files.items()},
    )
    return tmp_path


def test_version_2_counts_quotas_all_around_and_kills_of_its_own(tmp_path: Path) -> None:
    proc = version_2(tmp_path)
    assert read(Groups.of([7], proc), proc).counters == {
        "throttled_time": 320_000,
        "oom_kills": 2,  # a neighbour's are in the group around
        "pressure_io": 70_000,
        "pressure_memory": 9_000_000,  # the machine's
    }


def test_pressure_of_a_group_goes_before_that_of_the_machine(tmp_path: Path) -> None:
    proc = version_2(tmp_path, **{"memory.pressure": "some avg10=0 total=3\nfull total=0\n"})
    assert read(Groups.of([7], proc), proc).counters["pressure_memory"] == 3_000


def test_version_1_has_a_tree_for_each_controller(tmp_path: Path) -> None:
    put(
        tmp_path,
        {
            "self/mountinfo": f"1 0 0:1 / {tmp_path}/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
            f"2 0 0:2 / {tmp_path}/memory rw - cgroup cgroup rw,memory\n",
            "7/cgroup": "3:memory:/jobs/one\n2:cpu,cpuacct:/jobs\n1:name=systemd:/\n",
            "cpu/cpu.stat": "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n",
            "cpu/jobs/cpu.stat": "nr_periods 9\nnr_throttled 2\nthrottled_time 12345\n",
            "memory/jobs/one/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
        },
    )
    counters = read(Groups.of([7], tmp_path), tmp_path).counters
    assert counters == {"throttled_time": 12_345, "oom_kills": 1}


def test_names_of_groups_and_mounts_may_have_characters_that_end_a_line_elsewhere(
    tmp_path: Path,
) -> None:
    proc = version_2(tmp_path)
    odd = "a\x1cb\u2028c\u00a0d"
    known = (tmp_path / "self/mountinfo").read_text()
    put(tmp_path, {
        "self/mountinfo": f"30 23 0:37 / /home/{odd} rw - fuse  rw\n{known}",
        "7/cgroup": f"0::/pod/service/{odd}\n",
        f"tree/service/{odd}/memory.events": "oom_kill 4\n",
    })  # fmt: skip
    assert read(Groups.of([7], proc), proc).counters["oom_kills"] == 4


def test_what_is_not_there_is_not_counted(tmp_path: Path) -> None:
    assert read(Groups.of([7], tmp_path), tmp_path).counters == {}


def test_a_difference_has_what_both_know() -> None:
    before = Saturation(5, 0, {"oom_kills": 2, "pressure_io": 4})
    after = Saturation(25, 0, {"oom_kills": 3, "pressure_cpu": 9})
    assert after - before == Saturation(5, 20, {"oom_kills": 1})


def test_what_is_told_of_a_run_that_counts() -> None:
    few = {"throttled_time": SECOND // 200, "pressure_io": SECOND}
    assert notes(Saturation(0, 2 * SECOND, few)) == [
        "the service was throttled for 0.005 s of 2 s",
        "the service waited for a disk for 1 s of 2 s",
    ]
    assert (
        notes(Saturation(0, 2 * SECOND, {"pressure_io": SECOND // 10, "throttled_time": 0})) == []
    )


def test_a_group_that_a_process_enters_counts_from_then_on(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    put(
        tmp_path,
        {
            "self/mountinfo": f"31 23 0:38 / {tree} rw - cgroup2 cgroup2 rw\n",
            "7/cgroup": "0::/tare\n",
            "8/cgroup": "0::/tare/load\n",
            "tree/tare/cpu.stat": "throttled_usec 5\n",
            "tree/tare/memory.events": "oom_kill 1\n",
            "tree/tare/load/cpu.stat": "throttled_usec 100\n",
            "tree/tare/load/memory.events": "oom_kill 0\n",
        },
    )
    watch = Watch([7], quota_only=True, proc=tmp_path)
    watch.look([7])
    watch.look([8])
    put(
        tmp_path,
        {
            "tree/tare/cpu.stat": "throttled_usec 7\n",
            "tree/tare/memory.events": "oom_kill 2\n",  # may be the service's
            "tree/tare/load/cpu.stat": "throttled_usec 400\n",
            "tree/tare/load/memory.events": "oom_kill 1\n",
        },
    )
    watch.look([8])
    # With its last process, the group can be removed.
    shutil.rmtree(tree / "tare/load")
    watch.look([])
    assert watch.saturation().counters == {"throttled_time": 302_000, "oom_kills": 1}
