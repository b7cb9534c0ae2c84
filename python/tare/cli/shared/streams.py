# SPDX-License-Identifier: Apache-2.0
"""Output that may have nobody who reads it."""

import os
import sys
from typing import TextIO

from tare.terminal import printable


def tell(text: str) -> None:
    """Prints lines on stderr; a closed pipe or a full disk there is no reason to stop working."""
    try:
        print(printable(text, "\n"), file=sys.stderr, flush=True)
    except OSError:
        silence(sys.stderr)


def silence(stream: TextIO) -> None:
    """Keeps Python from writing what is left, and from failing once more, when it ends."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, stream.fileno())
    os.close(null)
