# SPDX-License-Identifier: Apache-2.0
"""Shared memory that somebody else changes at random (tests/link/mutations.py and
tests/log/mutations.py), with AddressSanitizer."""

import subprocess
import sys

from bench.results import ROOT, renew
from tests.soak.asan import sanitized

PER_SEED = 100_000


def link(mutations: int) -> None:
    """Links whose other end makes this number of changes; renews the section. Raises
    CalledProcessError at the first seed that fails."""
    if found := _each_seed(mutations, "tests.link.mutations"):
        links, resets = (sum(numbers) for numbers in zip(*found, strict=True))
        renew(
            "link-mutations",
            "Links whose memory the other end changes, with AddressSanitizer",
            f"python -m tests.soak link-mutations --mutations {mutations}",
            f"{len(found) * PER_SEED:,} changes in {links:,} links, {resets:,} of which were"
            " reset; no crash, no call that did not return, no byte that nobody sent.",
        )


def log(mutations: int) -> None:
    """As `link`, of the segment of a program in C, while it and its collector work."""
    if found := _each_seed(mutations, "tests.log.mutations", "C"):
        (events,) = (sum(numbers) for numbers in zip(*found, strict=True))
        renew(
            "log-mutations",
            "Segments that change while a program logs, with AddressSanitizer",
            f"python -m tests.soak log-mutations --mutations {mutations}",
            f"{len(found) * PER_SEED:,} changes in {len(found):,} programs; no crash, no call that"
            f" did not return, and files of {events:,} events that can be read.",
        )


def _each_seed(mutations: int, *module: str) -> list[list[int]]:
    """The numbers that the module prints for each seed; none if nothing can be built."""
    found = []
    with sanitized() as environment:
        for seed in range(1, 1 + -(-mutations // PER_SEED)) if environment else ():
            command = [sys.executable, "-m", *module, str(seed), str(PER_SEED)]
            printed = subprocess.check_output(command, cwd=ROOT, env=environment, text=True)
            found.append([int(number) for number in printed.split()])
    return found
