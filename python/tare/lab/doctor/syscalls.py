# SPDX-License-Identifier: Apache-2.0
"""System calls that Python does not wrap."""

import ctypes
import os
import platform
import signal

_NUMBERS = {
    "x86_64": {"bpf": 321, "perf_event_open": 298},
    "aarch64": {"bpf": 280, "perf_event_open": 241},
}
_PR_SET_PDEATHSIG = 1
_NEW_MOUNTS = 0x20000
_RECURSIVE = 0x4000
_PRIVATE = 0x40000
_libc = ctypes.CDLL(None, use_errno=True)


def system_call(name: str, *arguments: int | ctypes.c_char_p | ctypes.Array[ctypes.c_char]) -> int:
    """The result of a raw system call; raises OSError with its errno."""
    number = _NUMBERS.get(platform.machine(), {}).get(name)
    if number is None:
        raise OSError(f"the number of {name} on {platform.machine()} is unknown")
    words = [ctypes.c_long(word) if isinstance(word, int) else word for word in arguments]
    result: int = _libc.syscall(ctypes.c_long(number), *words)
    return _checked(result)


def unshare(flags: int) -> None:
    """unshare(2): moves this process into new namespaces."""
    _checked(_libc.unshare(flags))


def mount_for_this_process(kind: str, folder: str) -> None:
    """Mounts a file system where nobody else sees it; it goes with this process. Needs root."""
    unshare(_NEW_MOUNTS)
    _checked(_libc.mount(b"none", b"/", None, ctypes.c_ulong(_RECURSIVE | _PRIVATE), None))
    _checked(_libc.mount(kind.encode(), folder.encode(), kind.encode(), ctypes.c_ulong(0), None))


def die_with_parent(parent: int) -> None:
    """Ends this process when `parent`, its parent, ends, however that happens."""
    _checked(_libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL))
    if os.getppid() != parent:
        os._exit(1)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
