# SPDX-License-Identifier: Apache-2.0
"""Two guests for KVM on x86-64: their code, their memory, their registers (struct kvm_sregs).

One halts in real mode. The other is the least that a kernel must be able to do: go to user space,
let it compute for a while and get its system call.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass

MEMORY = 0x10000
CODE = 0x1000
STACK = 0x9000
_TABLES, _DESCRIPTORS = 0x2000, 0x5000


@dataclass(frozen=True)
class Guest:
    """`enter` writes the special registers and the tables in memory that they point at."""

    code: bytes
    enter: Callable[[bytearray, memoryview], None]


def _real_mode(special: bytearray, _memory: memoryview) -> None:
    struct.pack_into("<Q", special, 0, 0)
    struct.pack_into("<H", special, 12, 0)


def _long_mode(special: bytearray, memory: memoryview) -> None:
    # One page of 2 MiB, for kernel and user alike.
    for level, entry in enumerate((_TABLES + 0x1007, _TABLES + 0x2007, 0x87)):
        struct.pack_into("<Q", memory, _TABLES + 0x1000 * level, entry)
    kernel_code, kernel_data = 0x00AF9B000000FFFF, 0x00CF93000000FFFF
    user_data, user_code = 0x00CFF3000000FFFF, 0x00AFFB000000FFFF
    struct.pack_into("<5Q", memory, _DESCRIPTORS, 0, kernel_code, kernel_data, user_data, user_code)
    special[0:24] = _segment(selector=8, kind=11, long=1)
    for number in range(1, 6):
        special[24 * number : 24 * (number + 1)] = _segment(selector=16, kind=3, long=0)
    struct.pack_into("<QH", special, 192, _DESCRIPTORS, 39)
    struct.pack_into("<Q", special, 224, 0x80050033)  # cr0: paging, protection
    struct.pack_into("<QQ", special, 240, _TABLES, 0x620)  # cr3; cr4: PAE, SSE
    struct.pack_into("<Q", special, 264, 0x501)  # efer: long mode, syscall


def _segment(selector: int, kind: int, long: int) -> bytes:
    """struct kvm_segment of a flat segment of the kernel."""
    return struct.pack(
        "<QIHBBBBBBBBBB", 0, 0xFFFFFFFF, selector, kind, 1, 0, 1 - long, 1, long, 1, 0, 0, 0
    )


REAL_MODE = Guest(bytes.fromhex("f4"), _real_mode)
USER_SPACE = Guest(
    bytes.fromhex(
        "b9810000c0"  # kernel:  mov ecx, STAR
        "31c0"  #                xor eax, eax
        "ba08001000"  #          mov edx, 0x100008: selectors of kernel and user
        "0f30"  #                wrmsr
        "ffc1"  #                inc ecx: LSTAR
        "b840100000"  #          mov eax, handler
        "31d2"  #                xor edx, edx
        "0f30"  #                wrmsr
        "b927100000"  #          mov ecx, user
        "41bb02000000"  #        mov r11d, 2: its flags
        "480f07"  #              sysretq
        "b980969800"  # user:    mov ecx, 10000000
        "ffc9"  #       turn:    dec ecx
        "75fc"  #                jnz turn
        "66480f6ec1"  #          movq xmm0, rcx: programs use SSE
        "0f05"  #                syscall
        "cccccccccccccccccc"
        "f4"  #         handler: hlt, which only a kernel may
    ),
    _long_mode,
)
