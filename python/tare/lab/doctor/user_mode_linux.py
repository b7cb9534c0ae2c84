# SPDX-License-Identifier: Apache-2.0
"""User-mode Linux: its kernel must have booted, and run a program with the files of this host."""

from pathlib import Path

from tare.lab.doctor.commands import ask
from tare.lab.doctor.finding import Found
from tare.lab.environments.guest.uml import KERNEL
from tare.lab.processes.processes import find

BOOT_S = 12


def user_mode_linux() -> Found:
    """Boots it with `true` as the first program: its kernel says how that ended, and gives up."""
    program = find(KERNEL)
    if program is None:
        return Found("no", "not installed", {"path": None, "version": None})
    _, version = ask(program, "--version")
    console = Path("console")
    script = 'exec "$0" "$@" >console 2>&1'
    ask(
        "sh", "-c", script, program, "mem=64M", "rootfstype=hostfs", "ro", "con=null",
        "con0=null,fd:1", "uml_dir=.", f"init={find('true') or '/bin/true'}",
        limit_s=BOOT_S,
    )  # fmt: skip
    said = console.read_text(encoding="utf-8", errors="replace") if console.exists() else ""
    details = {"path": program, "version": version}
    if "kill init! exitcode=0x00000000" in said:
        return Found("yes", f"Linux {version} booted and ran a program", details)
    lines = [line for line in said.splitlines() if line]
    return Found("no", f"{program} does not boot: {lines[-1] if lines else 'no output'}", details)
