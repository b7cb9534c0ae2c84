# SPDX-License-Identifier: Apache-2.0
"""Random calls on linked connections, compared with the kernel's (tests/link/differential.py), and
links whose memory the other end changes (tests/link/mutations.py)."""

import subprocess
import sys
from collections import Counter

from bench.results import ROOT, renew
from tests.link import differential
from tests.once import shared
from tests.soak.asan import sanitized

PER_SEED = 2000
MUTATIONS_PER_SEED = 100_000


def run(operations: int) -> None:
    """Compares this number of operations and renews the section; raises AssertionError with the
    seeds that differ, which `python -m tests.link.differential` repeats."""
    counts, differences = Counter[str](), list[str]()
    seeds = range(1, 1 + -(-operations // PER_SEED))
    with shared():
        for seed in seeds:
            done = differential.compare(seed, PER_SEED)
            counts += differential.coverage([done])
            if done.difference:
                differences.append(done.difference)
                print(done.difference, flush=True)
    print(differential.table(counts))
    renew(
        "link-random",
        "Random calls with and without a link",
        f"python -m tests.soak link --operations {operations}",
        f"{len(seeds) * PER_SEED:,} operations with {len(seeds):,} seeds;"
        f" {len(differences)} seeds differ.\n\n{differential.table(counts)}",
    )
    assert not differences, f"{len(differences)} of {len(seeds)} seeds differ"


def mutate(mutations: int) -> None:
    """Makes this number of changes with AddressSanitizer and renews the section; raises
    CalledProcessError at the first seed that fails."""
    links, resets = 0, 0
    seeds = range(1, 1 + -(-mutations // MUTATIONS_PER_SEED))
    with sanitized() as environment:
        if not environment:
            return
        for seed in seeds:
            command = [sys.executable, "-m", "tests.link.mutations"]
            command += [str(seed), str(MUTATIONS_PER_SEED)]
            printed = subprocess.check_output(command, cwd=ROOT, env=environment, text=True)
            numbers = [int(number) for number in printed.split()]
            links, resets = links + numbers[0], resets + numbers[1]
    renew(
        "link-mutations",
        "Links whose memory the other end changes, with AddressSanitizer",
        f"python -m tests.soak link-mutations --mutations {mutations}",
        f"{len(seeds) * MUTATIONS_PER_SEED:,} changes in {links:,} links, {resets:,} of which were"
        " reset; no crash, no call that did not return, no byte that nobody sent.",
    )
