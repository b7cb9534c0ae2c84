# SPDX-License-Identifier: Apache-2.0
"""The order of runs: randomised blocks from a seed. A pure function of what the plan says."""

import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class BlockPart:
    """All conditions of one block in one environment, in the order in which they start."""

    block: int
    """From 1."""
    environment: str
    conditions: tuple[str, ...]


@dataclass(frozen=True)
class Together:
    """Runs that are up at the same time: (number, condition) in the order of their start."""

    block: int
    environment: str
    runs: tuple[tuple[int, str], ...]


def order_of_runs(
    seed: int, blocks: int, environments: Sequence[str], conditions: Sequence[str]
) -> list[BlockPart]:
    """Every block holds every condition in each environment once, in random order.

    Environments take turns within a block, so that slow drift of the machine hits all alike.
    A block's order depends on the seed and its number alone: more blocks change no earlier one.
    """
    order = []
    for block in range(1, blocks + 1):
        chance = random.Random(f"{seed}/{block}")
        for environment in chance.sample(list(environments), len(environments)):
            mixed = tuple(chance.sample(list(conditions), len(conditions)))
            order.append(BlockPart(block, environment, mixed))
    return order


def groups(
    order: Sequence[BlockPart], interleaved: bool, done: Collection[int] = ()
) -> Iterator[Together]:
    """What is up together, in order, without the runs that are done.

    Runs are numbered from 1 over the whole experiment; a resumed run keeps its number. An
    interleaved block stands or falls as a whole: its runs are compared slice by slice.
    """
    number = 0
    for part in order:
        runs = tuple(enumerate(part.conditions, number + 1))
        number += len(runs)
        if interleaved:
            if any(run not in done for run, _ in runs):
                yield Together(part.block, part.environment, runs)
        else:
            for run in runs:
                if run[0] not in done:
                    yield Together(part.block, part.environment, (run,))


def load_seed(seed: int, block: int) -> int:
    """The seed of the load generator in one block: other slices in every block."""
    return random.Random(f"{seed}/{block}/load").getrandbits(32)
