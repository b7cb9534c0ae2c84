# SPDX-License-Identifier: Apache-2.0
"""The command line: one file a command; each reads arguments, calls one function, prints."""

import sys

import typer

from tare.cli import compare, doctor, native, report, run
from tare.errors import TareError

app = typer.Typer(
    name="tare",
    help="Weighs what stands between a service and its users, with verdicts that can be trusted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for module in (run, compare, report, doctor):
    module.register(app)
native.register(app)


def main() -> int:
    """Runs the command line and returns its exit code; every error is one line on stderr."""
    try:
        app(standalone_mode=True)
    except TareError as error:
        print(f"tare: {' '.join(str(error).split())}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("tare: interrupted", file=sys.stderr)
        return 130
    return 0
