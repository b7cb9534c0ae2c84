# SPDX-License-Identifier: Apache-2.0
"""Servers and proxies that plans start, and the tools that build Tare's parts."""

import re

from tare.lab.doctor.commands import ask
from tare.lab.doctor.finding import Found
from tare.lab.processes.processes import find

_TOOLS = {"cargo": "--version", "clang": "--version", "mvn": "--version", "node": "--version"}


def nginx() -> Found:
    return _program("nginx", "-v")


def haproxy() -> Found:
    return _program("haproxy", "-v")


def envoy() -> Found:
    return _program("envoy", "--version")


def build_tools() -> Found:
    tools = {name: _program(name, option) for name, option in _TOOLS.items()}
    details = {name: dict(found.details) for name, found in tools.items()}
    present = [
        f"{name} {found.details['version']}"
        for name, found in tools.items()
        if found.state == "yes"
    ]
    absent = [name for name, found in tools.items() if found.state == "no"]
    if not absent:
        return Found("yes", ", ".join(present), details)
    text = f"{', '.join(present) or 'none'}; not {', '.join(absent)}"
    return Found("partly" if present else "no", text, details)


def _program(name: str, option: str) -> Found:
    path = find(name)
    if path is None:
        return Found("no", f"{name} is not installed", {"path": None, "version": None})
    well, said = ask(path, option, line=0)
    if not well:
        return Found("no", f"{path} does not run: {said}", {"path": path, "version": None})
    number = re.search(r"\d+(\.\d+)+", said)
    version = number.group() if number else said
    return Found("yes", f"{version} {path}", {"path": path, "version": version})
