# SPDX-License-Identifier: Apache-2.0
"""Random calls on linked connections, compared with the kernel's (tests/link/differential.py)."""

from collections import Counter

from bench.results import renew
from tests.link import differential
from tests.once import shared

PER_SEED = 2000


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
