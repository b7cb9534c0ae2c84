# SPDX-License-Identifier: Apache-2.0
"""Tare's own native parts: there, and able to run here."""

import os
import subprocess
from pathlib import Path
from zipfile import is_zipfile

from tare.lab.doctor.commands import ask
from tare.lab.doctor.finding import Found
from tare.lab.processes.processes import find
from tare.native import native

_COMMANDS = (
    "tare-load", "tare-hook", "tare-log", "tare-map", "tare-link", "tare-spans", "tare-relay",
)  # fmt: skip
_LIBRARIES = ("libtare_distances.so", "libtare_hook.so", "libtare_log.so", "libtare_link.so")
_JARS = ("tare-log.jar", "tare-log-agent.jar")

_AFFECTS = {
    "tare-load": "tare load, and plans that use it",
    "tare-hook": "tare hook",
    "tare-link": "tare link",
    "tare-log": "tare log",
    "tare-map": "tare map",
    "tare-spans": "tare spans receive",
    "tare-relay": "environment netns with delay, rate or loss",
    "libtare_distances.so": "tare compare, tare run",
    "libtare_hook.so": "tare hook",
    "libtare_link.so": "tare link",
    "libtare_log.so": "tare log",
    "tare-log.jar": "tare log in Java",
    "tare-log-agent.jar": "tare log in Java",
}
_TOOLS = {
    "tare-map": "clang libbpf-dev",
    "tare-log.jar": "openjdk-17-jdk-headless maven",
    "tare-log-agent.jar": "openjdk-17-jdk-headless maven",
}
"""Debian packages without which a build leaves the part out."""


def native_parts() -> Found:
    problems = {name: _command_problem(native("bin", name)) for name in _COMMANDS}
    problems |= {name: _library_problem(native("lib", name)) for name in _LIBRARIES}
    problems |= {name: _jar_problem(native("java", name)) for name in _JARS}
    working = [name for name, problem in problems.items() if problem is None]
    failing = "; ".join(f"{name}: {problem}" for name, problem in problems.items() if problem)
    if not failing:
        return Found("yes", ", ".join(working), problems)
    missing = [name for name, problem in problems.items() if problem]
    affects = ", ".join(dict.fromkeys(_AFFECTS[name] for name in missing))
    tools = [_TOOLS[name] for name in missing if name in _TOOLS]
    get = "make native, or install the wheel"
    if len(tools) == len(missing):
        get = f"apt-get install {' '.join(dict.fromkeys(tools))}, then make native"
    return Found("partly" if working else "no", failing, problems, affects, get)


def _command_problem(path: str) -> str | None:
    if not os.access(path, os.X_OK):
        return "not built"
    well, said = ask(path, "--version")
    return None if well else said


def _jar_problem(path: str) -> str | None:
    """It is left out of a build without a JDK."""
    return None if is_zipfile(path) else "not built"


def _library_problem(path: str) -> str | None:
    """The dynamic linker only warns about a library that it cannot preload, and goes on."""
    if not Path(path).exists():
        return "not built"
    true = find("true") or "/bin/true"
    run = subprocess.run(
        [true],
        check=False,
        env={"LD_PRELOAD": path},
        capture_output=True,
        timeout=5,
        encoding="utf-8",
        errors="replace",
    )
    if run.returncode == 0 and not run.stderr:
        return None
    return run.stderr.strip().splitlines()[-1] if run.stderr else f"exit code {run.returncode}"
