# SPDX-License-Identifier: Apache-2.0
"""The kernel's BPF type format (linux/btf.h), as far as a probe needs it."""

import struct
from pathlib import Path

from tare.lab.doctor.finding import Found

KERNEL = Path("/sys/kernel/btf/vmlinux")
_MAGIC = 0xEB9F
TYPEDEF = 8
FUNCTION = 12
# Bytes that follow the common 12 of each kind: fixed, and for each of its `vlen` members.
_AFTER = {
    1: (4, 0), 3: (12, 0), 4: (0, 12), 5: (0, 12), 6: (0, 8), 13: (0, 8),
    14: (4, 0), 15: (0, 12), 17: (4, 0), 19: (0, 12),
}  # fmt: skip


def btf() -> Found:
    try:
        size = KERNEL.stat().st_size
        with KERNEL.open("rb") as file:
            magic = int.from_bytes(file.read(2), "little")
    except OSError as error:
        return Found("no", f"{KERNEL}: {error.strerror}")
    if magic != _MAGIC:
        return Found("no", f"{KERNEL} is not BTF")
    return Found("yes", f"{KERNEL}, {size / 1e6:.1f} MB", {"bytes": size})


def type_id(wanted_kind: int, name: str) -> int | None:
    """The id of a TYPEDEF or FUNCTION of the kernel; None if it is not there."""
    data = KERNEL.read_bytes()
    _, _, _, header, types, types_size, strings, strings_size = struct.unpack_from(
        "<HBBIIIII", data
    )
    text = data[header + strings : header + strings + strings_size]
    wanted = text.find(b"\0" + name.encode() + b"\0") + 1
    position, end, number = header + types, header + types + types_size, 1
    while position < end and wanted:
        name_offset, info = struct.unpack_from("<II", data, position)
        kind, members = info >> 24 & 0x1F, info & 0xFFFF
        if kind == wanted_kind and name_offset == wanted:
            return number
        fixed, each = _AFTER.get(kind, (0, 0))
        position += 12 + fixed + each * members
        number += 1
    return None
