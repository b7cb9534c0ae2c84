# SPDX-License-Identifier: Apache-2.0
"""What this process may do."""

import os
from pathlib import Path

from tare.lab.doctor.finding import Found

# Numbers of capability.h; what each is for in Tare.
_WANTED = {
    "CAP_KILL": 5,
    "CAP_NET_ADMIN": 12,
    "CAP_NET_RAW": 13,
    "CAP_SYS_PTRACE": 19,
    "CAP_SYS_ADMIN": 21,
    "CAP_SYS_NICE": 23,
    "CAP_SYS_RESOURCE": 24,
    "CAP_PERFMON": 38,
    "CAP_BPF": 39,
}


def root() -> Found:
    user = os.geteuid()
    if user != 0:
        return Found("no", f"user {user}", {"uid": user})
    if Path("/proc/self/uid_map").read_text(encoding="utf-8").split() != ["0", "0", "4294967295"]:
        return Found("partly", "root of a user namespace", {"uid": 0})
    return Found("yes", "root", {"uid": 0})


def capabilities() -> Found:
    line = next(
        line
        for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        if line.startswith("CapEff:")
    )
    effective = int(line.split()[1], 16)
    held = {name: bool(effective >> number & 1) for name, number in _WANTED.items()}
    lacking = [name for name, has in held.items() if not has]
    if not lacking:
        return Found("yes", f"all {len(held)} capabilities that Tare uses", held)
    if len(lacking) == len(held):
        return Found("no", "no capability that Tare uses", held)
    return Found("partly", f"missing of those that Tare uses: {', '.join(lacking)}", held)
