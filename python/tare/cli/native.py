# SPDX-License-Identifier: Apache-2.0
"""Native commands in `tare --help`; `tare/__main__.py` runs them before this is imported."""

import typer

from tare.__main__ import NATIVE_COMMANDS

HELP = {
    "hook": "Trace or block at libc level in any unmodified program.",
    "load": "Send a load and record every request.",
}


def register(app: typer.Typer) -> None:
    """Adds every native command, with its one line of help."""
    for name in NATIVE_COMMANDS:
        app.command(name, help=HELP[name], add_help_option=False)(_run)


def _run() -> None:
    raise AssertionError("native commands are run by tare/__main__.py")
