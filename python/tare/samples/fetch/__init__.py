# SPDX-License-Identifier: Apache-2.0
"""Fetches traces from servers into files that the readers of `formats` read."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Window:
    """From a time to another, both included, in ns since the Unix epoch."""

    start_ns: int
    end_ns: int


@dataclass(frozen=True)
class Fetched:
    """What is in the file."""

    spans: int
    traces: int | None = None
    """None if they were not counted."""
    warnings: tuple[str, ...] = ()
