# SPDX-License-Identifier: Apache-2.0
"""The order of runs: randomised blocks from a seed. A pure function of what the plan says."""

import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class BlockPart:
    """What is compared in one group of one block, in the order in which it starts."""

    block: int
    """From 1."""
    group: str
    """The environment, or where environments are compared, the condition."""
    compared: tuple[str, ...]
    """Conditions, or environments."""


@dataclass(frozen=True)
class Together:
    """Runs that are up at the same time, in the order of their start."""

    block: int
    group: str
    runs: tuple[tuple[int, str], ...]
    """Each by its number, and the name of what is compared."""


def order_of_runs(
    seed: int, blocks: int, groups: Sequence[str], compared: Sequence[str]
) -> list[BlockPart]:
    """Every block holds all that is compared once in each group, in random order.

    Groups take turns within a block, so that slow drift of the machine hits all alike.
    A block's order depends on the seed and its number alone: more blocks change no earlier block.
    """
    order = []
    for block in range(1, blocks + 1):
        chance = random.Random(f"{seed}/{block}")
        for group in chance.sample(list(groups), len(groups)):
            mixed = tuple(chance.sample(list(compared), len(compared)))
            order.append(BlockPart(block, group, mixed))
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
        runs = tuple(enumerate(part.compared, number + 1))
        number += len(runs)
        if interleaved:
            if any(run not in done for run, _ in runs):
                yield Together(part.block, part.group, runs)
        else:
            for run in runs:
                if run[0] not in done:
                    yield Together(part.block, part.group, (run,))


def load_seed(seed: int, block: int) -> int:
    """The seed of the load generator in one block: other slices in every block."""
    return random.Random(f"{seed}/{block}/load").getrandbits(32)
