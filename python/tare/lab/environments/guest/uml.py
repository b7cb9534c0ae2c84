# SPDX-License-Identifier: Apache-2.0
"""User-mode Linux: a kernel that is a process of this host."""

import re
import subprocess
from pathlib import Path

from tare.lab.environments.guest.machine import Boot, Machine
from tare.lab.processes.processes import find
from tare.plan import expected

KERNEL = "linux.uml"
CPUS = Path("/proc/cpuinfo")
FIRST_WITH_AMX = (6, 13)
"""Earlier ones hand over 2,696 bytes of registers, and Linux wants all: 11,008 on a CPU with AMX
(EFAULT of PTRACE_SETREGSET)."""


class UserModeLinux(Machine):
    """It needs no hardware, computes at full speed, and has one CPU."""

    interface = "vec0"
    disk = "ubd"
    most_cpus = 1

    def check(self) -> None:
        if find(KERNEL) is None:
            raise expected(f"{KERNEL} to be installed: get the package user-mode-linux")
        if "amx_tile" in CPUS.read_text(encoding="utf-8") and _version() < FIRST_WITH_AMX:
            raise expected(f"{KERNEL} 6.13 or later, as this CPU has AMX: take machine = 'tcg'")

    def command(self, boot: Boot) -> list[str]:
        first, *words = boot.first
        return [
            # Its memory is a file there, which has no name.
            "env", "TMPDIR=/dev/shm",
            KERNEL, f"mem={boot.memory}", "rootfstype=hostfs", "rw", "quiet", "con=null",
            "con0=null,fd:1", f"umid={boot.name}", f"uml_dir={boot.folder}",
            f"hostname={boot.name}", f"vec0:transport=tap,ifname={boot.tap},depth=128",
            *(f"ubd{number}={image}" for number, image in enumerate(boot.disks)),
            f"init={first}", "--", *words,
        ]  # fmt: skip


def _version() -> tuple[int, int]:
    """The newest that there can be, if it does not say."""
    done = subprocess.run([KERNEL, "--version"], capture_output=True, check=False, encoding="utf-8")
    found = re.match(r"(\d+)\.(\d+)", done.stdout)
    return (int(found[1]), int(found[2])) if found else (99, 0)
