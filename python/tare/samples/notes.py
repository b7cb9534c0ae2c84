# SPDX-License-Identifier: Apache-2.0
"""Warnings, notes that ask for nothing, and one line for many runs with the same cause."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator


class Note(str):
    """A line that a reader need not act on: the terminal leaves it out, JSON and report have it."""

    __slots__ = ()


class TraceWarning(str):
    """A warning about critical paths: the terminal prints it below them."""

    __slots__ = ()


def grouped(lines: Iterable[tuple[str, str, str]], kind: str) -> Iterator[str]:
    """One line for each condition and cause, of lines as (condition, where, cause).

    Causes that differ in their numbers alone are one. `kind` is what `where` names: a file, a run.
    """
    causes: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for condition, where, cause in lines:
        key = condition, re.sub(r"(?<!\w)\d[\d,.]*", "#", cause)
        causes.setdefault(key, []).append((where, cause))
    for (condition, _), found in causes.items():
        where, cause = found[0]
        if len(found) == 1:
            yield f"{where}: {cause}"
        else:
            yield f"'{condition}': {len(found):,} {kind}s, the first is {where}: {cause}"


def of_lab(lines: Iterable[str]) -> list[str]:
    """The warnings of `tare run`, those about single runs grouped."""
    others: list[str] = []
    runs: list[tuple[str, str, str]] = []
    for line in lines:
        if found := re.fullmatch(r"(run \d+ \((.*?)\)): (.*)", line):
            runs.append((found[2], found[1], found[3]))
        else:
            others.append(line)
    return [*others, *grouped(runs, "run")]
