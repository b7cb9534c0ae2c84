# SPDX-License-Identifier: Apache-2.0
"""perf events: hardware counters of this process, or at least the kernel's own."""

import ctypes
import os
import struct
from pathlib import Path

from tare.lab.doctor.finding import Found
from tare.lab.doctor.syscalls import system_call

_CLOSE_ON_EXEC = 8
# type and config of perf_event.h; `exclude_kernel` is bit 5 of the flags.
_COUNTERS = {
    "cycles": (0, 0),
    "instructions": (0, 1),
    "task clock": (1, 1),
    "context switches": (1, 3),
}
_HARDWARE = ("cycles", "instructions")
_EXCLUDE_KERNEL = 1 << 5


def perf_events() -> Found:
    works = {name: _opens(*counter) for name, counter in _COUNTERS.items()}
    paranoid = Path("/proc/sys/kernel/perf_event_paranoid")
    level = int(paranoid.read_text(encoding="utf-8")) if paranoid.exists() else None
    details = {"counters": works, "paranoid": level}
    text = f"{', '.join(name for name, well in works.items() if well)} (paranoid {level})"
    if not any(works.values()):
        return Found("no", f"no counter can be opened (perf_event_paranoid {level})", details)
    if not all(works[name] for name in _HARDWARE):
        return Found("partly", f"{text}; no hardware counters", details)
    return Found("yes", text, details)


def _opens(kind: int, config: int) -> bool:
    attributes = bytearray(128)
    struct.pack_into("<IIQ", attributes, 0, kind, len(attributes), config)
    struct.pack_into("<Q", attributes, 40, _EXCLUDE_KERNEL)
    buffer = ctypes.create_string_buffer(bytes(attributes), len(attributes))
    try:
        os.close(system_call("perf_event_open", buffer, 0, -1, -1, _CLOSE_ON_EXEC))
    except OSError:
        return False
    return True
