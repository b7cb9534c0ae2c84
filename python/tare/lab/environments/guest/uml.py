# SPDX-License-Identifier: Apache-2.0
"""User-mode Linux: a kernel that is a process of this host."""

from tare.lab.environments.guest.machine import Boot, Machine
from tare.lab.processes.processes import find
from tare.plan import expected

KERNEL = "linux.uml"


class UserModeLinux(Machine):
    """It needs no hardware, computes at full speed, and has one CPU."""

    interface = "vec0"
    disk = "ubd"
    most_cpus = 1

    def check(self) -> None:
        if find(KERNEL) is None:
            raise expected(f"{KERNEL} to be installed: get the package user-mode-linux")

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
