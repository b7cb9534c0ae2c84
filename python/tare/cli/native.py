# SPDX-License-Identifier: Apache-2.0
"""Native commands in `tare --help`; `tare/__main__.py` runs them before this is imported."""

import re
import subprocess
from typing import Any

import typer
from typer.core import CompletionItem, TyperCommand  # type: ignore[attr-defined]

from tare.__main__ import NATIVE_COMMANDS
from tare.native import native

HELP = {
    "hook": "Trace or block data on the sockets of an unmodified program.",
    "link": "Carry TCP connections of local programs over shared memory.",
    "load": "Send requests to a service and record each of them.",
    "log": "Record events of programs through shared memory, and read them.",
    "map": "Show which programs of this host talk to which services.",
    "spans receive": "Receive spans over OTLP, and write them to a file.",
    "spans run": "Run a program, and receive the spans that it sends.",
    "spans schema": "Print the columns that 'receive' writes.",
}


class NativeCommand(TyperCommand):
    """Knows the options of a native command by its own help, for the shell's completion."""

    def shell_complete(self, ctx: Any, incomplete: str) -> list[CompletionItem]:
        """The options that begin so, of the program or of its subcommand if it was typed."""
        if not incomplete.startswith("-") or "--" in ctx.args:
            return []
        subcommand = [word for word in ctx.args[:1] if word.isalpha()]
        name = " ".join(ctx.command_path.split()[1:])
        command = [native("bin", NATIVE_COMMANDS[name]), *name.split()[1:], *subcommand, "--help"]
        try:
            done = subprocess.run(
                command, capture_output=True, encoding="utf-8", check=False, timeout=2
            )
        except (OSError, subprocess.TimeoutExpired):
            return []
        names = re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", done.stdout, re.MULTILINE)
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


def register(app: typer.Typer, group: str = "") -> None:
    """Adds every native command of a group, or those without a group, with its one line of help."""
    free = {"ignore_unknown_options": True, "allow_extra_args": True}
    for full in NATIVE_COMMANDS:
        before, _, name = full.rpartition(" ")
        if before == group:
            app.command(
                name,
                cls=NativeCommand,
                help=HELP[full],
                add_help_option=False,
                context_settings=free,
            )(_run)


def _run() -> None:
    raise AssertionError("native commands are run by tare/__main__.py")
