# SPDX-License-Identifier: Apache-2.0
"""Runs a command in which the kernel refuses some commands of bpf(2).

Its words are an error number, numbers of these commands with commas between, and the command.
"""

import ctypes
import os
import platform
import struct
import sys

ALLOW, ERROR = 0x7FFF0000, 0x00050000
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
"""Instructions of the filter: load a word of `struct seccomp_data`, jump if equal, return."""
NUMBER, FIRST_ARGUMENT = 0, 16
BPF = {"x86_64": 321, "aarch64": 280}[platform.machine()]
NO_NEW_PRIVILEGES, SECCOMP, FILTER = 38, 22, 2


def deny(error: int, commands: list[int]) -> None:
    instructions = [
        (LOAD, 0, 0, NUMBER),
        (EQUAL, 1, 0, BPF),
        (RETURN, 0, 0, ALLOW),
        (LOAD, 0, 0, FIRST_ARGUMENT),
    ]
    for command in commands:
        instructions += [(EQUAL, 0, 1, command), (RETURN, 0, 0, ERROR | error)]
    instructions.append((RETURN, 0, 0, ALLOW))
    code = ctypes.create_string_buffer(
        b"".join(struct.pack("HBBI", *instruction) for instruction in instructions)
    )
    program = struct.pack("HxxxxxxP", len(instructions), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    for words in [(NO_NEW_PRIVILEGES, 1, 0, 0, 0), (SECCOMP, FILTER, program, 0, 0)]:
        if libc.prctl(*words):
            raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    deny(int(sys.argv[1]), [int(number) for number in sys.argv[2].split(",")])
    os.execvp(sys.argv[3], sys.argv[3:])
