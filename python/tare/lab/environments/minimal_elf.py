# SPDX-License-Identifier: Apache-2.0
"""Static programs of a few bytes, which run in any container: no file system has what they need."""

import platform
import struct

_MACHINES = {"x86_64": 62, "aarch64": 183}
_EXIT = {
    # mov eax, 60; xor edi, edi; syscall
    "x86_64": "b83c000000 31ff 0f05",
    # mov x0, 0; mov x8, 93; svc 0
    "aarch64": "000080d2 a80b80d2 010000d4",
}
_WAIT = {
    # mov eax, 34 (pause); syscall; jmp to the start
    "x86_64": "b822000000 0f05 ebf7",
    # mov x0..x3, 0; mov x8, 73 (ppoll); svc 0; b to the start
    "aarch64": "000080d2 010080d2 020080d2 030080d2 280980d2 010000d4 faffff17",
}


def exit_program() -> bytes:
    """A program that ends at once with exit code 0."""
    return _elf(_EXIT)


def wait_program() -> bytes:
    """A program that waits until it is killed."""
    return _elf(_WAIT)


def _elf(codes: dict[str, str]) -> bytes:
    """A static program for this machine (ELF-64: header, one segment, code)."""
    machine = platform.machine()
    code = bytes.fromhex(codes[machine])
    base, headers = 0x400000, 64 + 56
    size = headers + len(code)
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 2, _MACHINES[machine], 1,
        base + headers, 64, 0, 0, 64, 56, 1, 64, 0, 0,
    )  # fmt: skip
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, size, size, 0x1000)
    return header + segment + code
