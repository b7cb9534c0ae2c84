# SPDX-License-Identifier: Apache-2.0
"""`tare` as a function of the process that tests: starting it would load its libraries anew."""

import os
import signal
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from unittest.mock import patch

from tare.cli import main


@dataclass(frozen=True)
class Done:
    """How a command ended, and what it printed."""

    returncode: int
    stdout: str
    stderr: str


def tare(*arguments: object, **variables: str) -> Done:
    """Runs the command as if these were typed, with these environment variables besides.

    It has 200 columns, and is not in a workflow of GitHub's unless the variables say so.
    """
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = exit_code(*arguments, **variables)
    return Done(code, out.getvalue(), err.getvalue())


def exit_code(*arguments: object, **variables: str) -> int:
    """`tare` with the output of this process."""
    known = {name: value for name, value in os.environ.items() if name != "GITHUB_SHA"}
    with (
        patch.dict(os.environ, known | {"COLUMNS": "200"} | variables, clear=True),
        patch.object(sys, "argv", ["tare", *map(str, arguments)]),
    ):
        handler = signal.getsignal(signal.SIGINT)
        try:
            return main()
        finally:
            signal.signal(signal.SIGINT, handler)
