# SPDX-License-Identifier: Apache-2.0
"""Loads a program of two instructions of each type that Tare uses or may use, and lets it go.

The kinds that observe are attached too, for a moment: a kernel without kprobes still loads
programs for them. The kinds that change traffic are loaded only.
"""

import ctypes
import errno
import os
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tare.lab.doctor import btf
from tare.lab.doctor.finding import Found
from tare.lab.doctor.syscalls import mount_for_this_process, system_call

_PROG_LOAD = 5
_RAW_TRACEPOINT_OPEN = 17
_TRACE_RAW_TRACEPOINT, _TRACE_FENTRY, _TRACE_ITERATOR = 23, 24, 28
_CGROUP_CONNECT4 = 10
_PERF_TYPE_TRACEPOINT = 2
_PERF_SET_BPF = 0x40042408
_CLOSE_ON_EXEC = 8
# r0 = 0; exit
_PROGRAM = bytes.fromhex("b700000000000000 9500000000000000")
# Called seldom, and on every kernel that can carry TCP.
_FUNCTION = "tcp_close"
_TRACEPOINT = "sched_process_exit"


_USED = ("tp_btf", "iter", "cgroup_sock_addr")
"""Types of the programs of tare map."""


@dataclass(frozen=True)
class _Kind:
    name: str
    number: int
    attach: Callable[[int], None] | None = None
    attach_type: int = 0
    target: tuple[int, str] | None = None
    """Kind and name of the BTF type that the program is loaded for."""


def bpf() -> Found:
    """One line of what loads; details name the reason of each that does not."""
    results = {kind.name: _try(kind) for kind in _kinds()}
    types_by_problem: dict[str, list[str]] = {}
    for name, problem in results.items():
        if problem:
            types_by_problem.setdefault(problem, []).append(name)
    reasons = "; ".join(f"{', '.join(names)}: {why}" for why, names in types_by_problem.items())
    working = sum(problem is None for problem in results.values())
    if not working:
        return Found("no", f"no type works; {reasons}", results)
    if not reasons:
        return Found("yes", f"all {working} types work: {', '.join(results)}", results)
    text = f"{working} of {len(results)} types work; not {reasons}"
    if all(results[name] is None for name in _USED):
        return Found("partly", text, results, f"nothing: tare map needs {', '.join(_USED)}")
    return Found("partly", text, results)


def _try(kind: _Kind) -> str | None:
    """None if the kind works, else why not."""
    try:
        target = btf.type_id(*kind.target) if kind.target else 0
    except OSError:
        return "the kernel has no BTF"
    if target is None:
        return "the kernel has nothing to attach it to"
    try:
        program = _load(kind.number, kind.attach_type, target)
    except OSError as error:
        return _why("load", error)
    try:
        if kind.attach:
            kind.attach(program)
    except OSError as error:
        return _why("attach", error)
    finally:
        os.close(program)
    return None


def _load(kind: int, attach_type: int, target: int) -> int:
    instructions = ctypes.create_string_buffer(_PROGRAM)
    licence = ctypes.create_string_buffer(b"GPL")
    attributes = bytearray(128)
    struct.pack_into(
        "<IIQQ", attributes, 0,
        kind, len(_PROGRAM) // 8, ctypes.addressof(instructions), ctypes.addressof(licence),
    )  # fmt: skip
    struct.pack_into("<I", attributes, 68, attach_type)
    struct.pack_into("<I", attributes, 108, target)
    return _bpf(_PROG_LOAD, attributes)


def _attach_by_target(program: int) -> None:
    os.close(_bpf(_RAW_TRACEPOINT_OPEN, bytearray(struct.pack("<QII", 0, program, 0))))


def _attach_raw_tracepoint(program: int) -> None:
    name = ctypes.create_string_buffer(_TRACEPOINT.encode())
    attributes = struct.pack("<QII", ctypes.addressof(name), program, 0)
    os.close(_bpf(_RAW_TRACEPOINT_OPEN, bytearray(attributes)))


def _attach_kprobe(program: int) -> None:
    source = Path("/sys/bus/event_source/devices/kprobe/type")
    if not source.exists():
        raise FileNotFoundError(errno.ENOENT, "the kernel has no kprobes")
    name = ctypes.create_string_buffer(_FUNCTION.encode())
    _attach_event(program, int(source.read_text(encoding="utf-8")), config1=ctypes.addressof(name))


def _attach_tracepoint(program: int) -> None:
    folder = Path("/sys/kernel/tracing")
    if not (folder / "events").is_dir():
        folder = Path.cwd()
        mount_for_this_process("tracefs", str(folder))
    number = int((folder / "events/sched" / _TRACEPOINT / "id").read_text(encoding="utf-8"))
    _attach_event(program, _PERF_TYPE_TRACEPOINT, config=number)


def _attach_event(program: int, kind: int, config: int = 0, config1: int = 0) -> None:
    import fcntl

    attributes = bytearray(128)
    struct.pack_into("<IIQ", attributes, 0, kind, len(attributes), config)
    struct.pack_into("<Q", attributes, 56, config1)
    buffer = ctypes.create_string_buffer(bytes(attributes), len(attributes))
    event = system_call("perf_event_open", buffer, -1, 0, -1, _CLOSE_ON_EXEC)
    try:
        fcntl.ioctl(event, _PERF_SET_BPF, program)
    finally:
        os.close(event)


def _bpf(command: int, attributes: bytearray) -> int:
    buffer = ctypes.create_string_buffer(bytes(attributes), len(attributes))
    return system_call("bpf", command, buffer, len(attributes))


def _why(step: str, error: OSError) -> str:
    if error.errno in (errno.EPERM, errno.EACCES) and os.geteuid() != 0:
        return "needs root, or CAP_BPF and CAP_PERFMON"
    return f"{step}: {error.strerror or error}"


def _kinds() -> tuple[_Kind, ...]:
    """Numbers of `enum bpf_prog_type`."""
    return (
        _Kind("socket_filter", 1),
        _Kind("kprobe", 2, _attach_kprobe),
        _Kind("tracepoint", 5, _attach_tracepoint),
        _Kind("raw_tracepoint", 17, _attach_raw_tracepoint),
        _Kind(
            "tp_btf", 26, _attach_by_target,
            _TRACE_RAW_TRACEPOINT, (btf.TYPEDEF, f"btf_trace_{_TRACEPOINT}"),
        ),
        _Kind("fentry", 26, _attach_by_target, _TRACE_FENTRY, (btf.FUNCTION, _FUNCTION)),
        _Kind("iter", 26, None, _TRACE_ITERATOR, (btf.FUNCTION, "bpf_iter_tcp")),
        _Kind("cgroup_skb", 8),
        _Kind("cgroup_sock_addr", 18, None, _CGROUP_CONNECT4),
        _Kind("sock_ops", 13),
        _Kind("sk_msg", 16),
        _Kind("xdp", 6),
        _Kind("sched_cls", 3),
    )  # fmt: skip
