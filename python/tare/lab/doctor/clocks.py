# SPDX-License-Identifier: Apache-2.0
"""Time: what the clocks read, whether the TSC can be trusted, how much time others take."""

import platform
from pathlib import Path

from tare.lab.doctor.finding import Found
from tare.lab.machine.fingerprint import clock_source as kernel_clock_source
from tare.lab.machine.fingerprint import steal_share

# Read by programs themselves, through the vDSO.
_FAST = {"tsc", "arch_sys_counter", "kvm-clock", "hyperv_clocksource_tsc_page"}
_STEAL_WINDOW_S = 1.0
_QUIET = 0.01


def clock_source() -> Found:
    source = kernel_clock_source()
    if source is None:
        return Found("no", "the kernel does not report it", {"source": None})
    if source in _FAST:
        return Found("yes", f"{source}, read without a system call", {"source": source})
    return Found("partly", f"{source}, every reading is a system call", {"source": source})


def invariant_tsc() -> Found:
    if platform.machine() == "aarch64":
        return Found("yes", "the generic timer has a constant rate", {"flags": []})
    flags = _cpu_flags() & {"constant_tsc", "nonstop_tsc", "tsc_known_freq", "tsc_reliable"}
    details = {"flags": sorted(flags)}
    if {"constant_tsc", "nonstop_tsc"} <= flags:
        return Found("yes", ", ".join(sorted(flags)), details)
    return Found(
        "no", f"its rate may change or stop ({', '.join(sorted(flags)) or 'no flag'})", details
    )


def steal() -> Found:
    share = steal_share(_STEAL_WINDOW_S)
    details = {"share": share, "seconds": _STEAL_WINDOW_S}
    text = f"{share:.1%} of {_STEAL_WINDOW_S:g} s went to other guests"
    return Found("yes" if share < _QUIET else "partly", text, details)


def _cpu_flags() -> set[str]:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("flags"):
            return set(line.split(":")[1].split())
    return set()
