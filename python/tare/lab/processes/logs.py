# SPDX-License-Identifier: Apache-2.0
"""The end of a log, as an error quotes it."""

from pathlib import Path

from tare.terminal import printable

LONGEST = 200
"""Letters of a line."""


def last_lines(log: Path, most: int) -> list[str]:
    """At most `most` last lines of a log that are not blank, shortened and fit for a terminal.

    None where there is no such file.
    """
    text = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    return [printable(line[:LONGEST]) for line in lines[-most:]]
