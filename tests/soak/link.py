# SPDX-License-Identifier: Apache-2.0
"""Random calls on linked connections, compared with the kernel's (tests/link/differential.py)."""

from collections import Counter

from bench.results import renew
from tests.link import differential
from tests.once import shared

PER_SEED = 2000
BOUNDARIES = (10, 1000)
"""Bytes of the streams that change behind every byte, and messages in threads: for every tenth
seed."""


def run(operations: int) -> None:
    """Compares this number of operations and renews the section; raises AssertionError with the
    seeds that differ, which `python -m tests.link.differential` repeats."""
    counts, differences = Counter[str](), list[str]()
    seeds = range(1, 1 + -(-operations // PER_SEED))
    with shared():
        for seed in seeds:
            compared = [differential.compare(seed, PER_SEED)]
            if seed % 10 == 0:
                compared.append(differential.compare_boundaries(seed, *BOUNDARIES))
            counts += differential.coverage(compared)
            for difference in filter(None, (done.difference for done in compared)):
                differences.append(difference)
                print(difference, flush=True)
    print(differential.table(counts))
    renew(
        "link-random",
        "Random calls with and without a link",
        f"python -m tests.soak link --operations {operations}",
        f"{counts.total():,} operations with {len(seeds):,} seeds;"
        f" {len(differences)} seeds differ.\n\n{differential.table(counts)}",
    )
    assert not differences, f"{len(differences)} of {len(seeds)} seeds differ"
