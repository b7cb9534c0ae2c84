# SPDX-License-Identifier: Apache-2.0
"""KVM, judged by guests that ran, not by the device (Documentation/virt/kvm/api.rst)."""

import ctypes
import fcntl
import mmap
import os
import platform
import struct
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tare.lab.doctor.finding import Found
from tare.lab.doctor.guest import CODE, MEMORY, REAL_MODE, STACK, USER_SPACE, Guest

_DEVICE = "/dev/kvm"
_GET_API_VERSION, _CREATE_VM, _CREATE_VCPU, _VCPU_MMAP_SIZE = 0xAE00, 0xAE01, 0xAE41, 0xAE04
_GET_SUPPORTED_CPUID, _SET_CPUID2 = 0xC008AE05, 0x4008AE90
_SET_MEMORY, _RUN = 0x4020AE46, 0xAE80
_GET_SREGS, _SET_SREGS, _SET_REGS = 0x8138AE83, 0x4138AE84, 0x4090AE82
_CPUID_ENTRIES = 256
_EXIT_HLT = 5
_EXITS = {2: "ended in I/O", 6: "ended outside its memory", 8: "ended in a triple fault",
          9: "was not entered", 17: "ended in an internal error of KVM"}  # fmt: skip
# A CPU needs about 5 ms for what the guest computes in user space; an emulator needs seconds.
_NATIVE_S = 0.5


@dataclass(frozen=True)
class _End:
    reason: int
    seconds: float

    @property
    def native(self) -> bool:
        return self.reason == _EXIT_HLT and self.seconds < _NATIVE_S

    def __str__(self) -> str:
        if self.native:
            return "ran"
        if self.reason == _EXIT_HLT:
            return f"is emulated (took {self.seconds:.1f} s)"
        return _EXITS.get(self.reason, f"ended with KVM's exit {self.reason}")


def kvm() -> Found:
    """Yes only if a kernel reached user space and user space the kernel, at a CPU's speed."""
    modules = sorted(path.name for path in Path("/sys/module").glob("kvm_*"))
    details: dict[str, Any] = {"modules": modules, "real_mode": None, "user_space": None}
    named = f"{_DEVICE} ({', '.join(modules)})" if modules else _DEVICE
    try:
        device = os.open(_DEVICE, os.O_RDWR | os.O_CLOEXEC)
        fcntl.ioctl(device, _GET_API_VERSION, 0)
    except OSError as error:
        return Found("no", f"{named}: {error.strerror}", details)
    if platform.machine() != "x86_64":
        return Found("partly", f"{named} opens; no guest was tried on this architecture", details)
    details["real_mode"], _ = _try(device, REAL_MODE)
    details["user_space"], kernels_run = _try(device, USER_SPACE)
    if kernels_run:
        return Found("yes", f"{named}: a guest went to user space and back", details)
    text = f"real-mode guest {details['real_mode']}; user space {details['user_space']}"
    return Found("no", f"{named} opens but boots no kernel: {text}", details)


def _try(device: int, guest: Guest) -> tuple[str, bool]:
    try:
        end = _run(device, guest)
    except OSError as error:
        return f"could not be made: {error.strerror}", False
    return str(end), end.native


def _run(device: int, guest: Guest) -> _End:
    """Runs a guest of one CPU to its first exit; this process's end frees it."""
    vm = fcntl.ioctl(device, _CREATE_VM, 0)
    memory = mmap.mmap(-1, MEMORY)
    memory[CODE : CODE + len(guest.code)] = guest.code
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    fcntl.ioctl(vm, _SET_MEMORY, struct.pack("<IIQQQ", 0, 0, 0, MEMORY, address))
    cpu = fcntl.ioctl(vm, _CREATE_VCPU, 0)
    state = mmap.mmap(cpu, fcntl.ioctl(device, _VCPU_MMAP_SIZE, 0))
    # Long mode is refused to a CPU whose features were not set.
    features = bytearray(8 + 40 * _CPUID_ENTRIES)
    struct.pack_into("<I", features, 0, _CPUID_ENTRIES)
    fcntl.ioctl(device, _GET_SUPPORTED_CPUID, features)
    fcntl.ioctl(cpu, _SET_CPUID2, features)
    special = bytearray(312)
    fcntl.ioctl(cpu, _GET_SREGS, special)
    guest.enter(special, memoryview(memory))
    fcntl.ioctl(cpu, _SET_SREGS, bytes(special))
    general = bytearray(144)
    struct.pack_into("<Q", general, 48, STACK)
    struct.pack_into("<QQ", general, 128, CODE, 2)
    fcntl.ioctl(cpu, _SET_REGS, bytes(general))
    began = time.monotonic()
    fcntl.ioctl(cpu, _RUN, 0)
    seconds = time.monotonic() - began
    reason: int = struct.unpack_from("<I", state, 8)[0]
    return _End(reason, seconds)
