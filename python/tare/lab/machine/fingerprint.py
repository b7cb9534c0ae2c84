# SPDX-License-Identifier: Apache-2.0
"""What a result must say about the machine it came from."""

import hashlib
import json
import os
import platform
import subprocess
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tare.proc import proc_lines

Reading = str | int | float | bool

_CPU = Path("/sys/devices/system/cpu")
_STEAL_WINDOW_S = 0.2


def fingerprint() -> dict[str, Reading]:
    """Flat name -> reading, sorted by name; what this machine does not tell is absent.

    Sizes are bytes, shares are fractions of the time of all CPUs, pressures are percent as the
    kernel gives them. Nothing names the host: `machine` is a hash that only tells two machines
    apart. Takes about 0.2 s, the window of `steal_now`.
    """
    lscpu = _lscpu()
    readings: dict[str, Callable[[], Reading | None]] = {
        "architecture": platform.machine,
        "cgroup": cgroup_version,
        "clock_source": clock_source,
        "container": container,
        "cpu_model": lambda: lscpu.get("Model name:"),
        "cpus": os.cpu_count,
        "cpus_allowed": lambda: len(os.sched_getaffinity(0)),
        "distribution": lambda: platform.freedesktop_os_release().get("PRETTY_NAME"),
        "frequency_boost": frequency_boost,
        "frequency_governor": frequency_governor,
        "glibc": _glibc,
        "hypervisor": lambda: lscpu.get("Hypervisor vendor:"),
        "kernel": platform.release,
        "kernel_build": platform.version,
        "machine": _machine,
        "memory_bytes": lambda: os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "mitigations": _mitigations,
        "pressure_cpu": lambda: pressure("cpu"),
        "pressure_io": lambda: pressure("io"),
        "pressure_memory": lambda: pressure("memory"),
        "python": platform.python_version,
        "smt": _smt,
        "steal_now": lambda: steal_share(_STEAL_WINDOW_S),
        "steal_since_boot": lambda: _share((0, 0), cpu_ticks()),
        "tare": _tare,
        "transparent_hugepages": _hugepages,
    }
    found = {name: _optional(reading) for name, reading in readings.items()}
    return {name: value for name, value in sorted(found.items()) if value is not None}


def cpu_ticks() -> tuple[int, int]:
    """Ticks of all CPUs since boot: (all of them, those that the hypervisor gave to others)."""
    fields = [
        int(field)
        for field in Path("/proc/stat").read_text(encoding="utf-8").split("\n", 1)[0].split()[1:]
    ]
    # guest and guest_nice, the last two, are already counted in user and nice.
    return sum(fields[:8]), fields[7]


def steal_share(seconds: float) -> float:
    """Share of the CPU time of all CPUs lost to other guests over the next `seconds`."""
    before = cpu_ticks()
    time.sleep(seconds)
    return _share(before, cpu_ticks())


def cgroup_version() -> str | None:
    """`v2`, `v1`, or `hybrid` (v1 controllers beside a v2 tree); None without cgroups."""
    types = {mount.split(" ")[2] for mount in proc_lines(Path("/proc/self/mounts").read_bytes())}
    names = {("cgroup",): "v1", ("cgroup2",): "v2", ("cgroup", "cgroup2"): "hybrid"}
    return names.get(tuple(sorted(types & {"cgroup", "cgroup2"})))


def clock_source() -> str | None:
    """What the kernel's clocks read: `tsc` needs no system call and no exit to the hypervisor."""
    return _line("/sys/devices/system/clocksource/clocksource0/current_clocksource")


def container() -> str | None:
    """What contains this process, as far as it tells: `docker`, `podman`, `kubernetes` ..."""
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        return "kubernetes"
    if Path("/run/.containerenv").exists():
        return "podman"
    if Path("/.dockerenv").exists():
        return "docker"
    return _line("/run/systemd/container") or os.environ.get("container")  # noqa: SIM112


def frequency_governor() -> str | None:
    """The governor of the CPUs, all of them if they differ; None without frequency control."""
    governors = {_line(path) for path in _CPU.glob("cpu[0-9]*/cpufreq/scaling_governor")}
    return ", ".join(sorted(filter(None, governors))) or None


def frequency_boost() -> bool | None:
    """Whether a CPU may run above its nominal frequency; None where the kernel does not say."""
    if (no_turbo := _line(_CPU / "intel_pstate/no_turbo")) is not None:
        return no_turbo == "0"
    boost = _line(_CPU / "cpufreq/boost")
    return None if boost is None else boost == "1"


def pressure(resource: str) -> float | None:
    """Percent of the last 10 s in which some task waited for `cpu`, `io` or `memory` (PSI)."""
    line = _line(f"/proc/pressure/{resource}")
    return float(line.split("avg10=")[1].split()[0]) if line else None


def _optional(reading: Callable[[], Reading | None]) -> Reading | None:
    try:
        return reading()
    except (OSError, ValueError, IndexError):
        return None


def _line(path: Path | str) -> str | None:
    """The first line of a small file of the kernel; None where there is none."""
    try:
        return Path(path).read_text(encoding="utf-8").split("\n", 1)[0].strip()
    except OSError:
        return None


def _lscpu() -> dict[str, str]:
    try:
        answer = subprocess.run(
            ["lscpu", "--json"],
            env={**os.environ, "LC_ALL": "C"},
            capture_output=True,
            timeout=5,
            check=True,
        )
        fields = json.loads(answer.stdout)["lscpu"]
    except (OSError, subprocess.SubprocessError, ValueError, KeyError):
        return {}
    return {name: data for name, data in _flat(fields) if data}


def _flat(fields: list[dict[str, object]]) -> list[tuple[str, str]]:
    """Newer lscpu nests its fields under headings."""
    flat: list[tuple[str, str]] = []
    for field in fields:
        flat.append((str(field.get("field")), str(field.get("data") or "")))
        children = field.get("children")
        if isinstance(children, list):
            flat.extend(_flat(children))
    return flat


def _share(before: tuple[int, int], after: tuple[int, int]) -> float:
    whole = after[0] - before[0]
    return round((after[1] - before[1]) / whole, 4) if whole else 0.0


def _glibc() -> str | None:
    name, number = platform.libc_ver()
    return number if name == "glibc" else None


def _machine() -> str | None:
    identity = _line("/etc/machine-id")
    return hashlib.sha256(f"tare {identity}".encode()).hexdigest()[:16] if identity else None


def _mitigations() -> str | None:
    """Which CPU flaws the kernel works around, at a cost, and which it leaves open."""
    states = {
        path.name: path.read_text(encoding="utf-8").strip()
        for path in (_CPU / "vulnerabilities").iterdir()
    }
    worked_around = sorted(name for name, text in states.items() if text.startswith("Mitigation"))
    left_open = sorted(name for name, text in states.items() if text.startswith("Vulnerable"))
    return "; ".join(
        f"{heading}: {', '.join(names) or 'none'}"
        for heading, names in (("mitigated", worked_around), ("vulnerable", left_open))
    )


def _smt() -> bool | None:
    active = _line(_CPU / "smt/active")
    return None if active is None else active == "1"


def _hugepages() -> str | None:
    line = _line("/sys/kernel/mm/transparent_hugepage/enabled")
    return line.split("[")[1].split("]")[0] if line else None


def _tare() -> str | None:
    try:
        return version("tare")
    except PackageNotFoundError:
        return None
