# SPDX-License-Identifier: Apache-2.0
from collections import Counter
from collections.abc import Iterable

from tare.lab.run.schedule import BlockPart, Together, groups, load_seed, order_of_runs


class InMemory:
    """Carries groups out by noting them; it can be interrupted after some."""

    def __init__(self) -> None:
        self.starts: list[list[str]] = []
        self.done: set[int] = set()

    def carry_out(self, schedule: Iterable[Together], until: int = 10**6) -> None:
        for together in list(schedule)[:until]:
            self.starts.append([name for _, name in together.runs])
            self.done |= {number for number, _ in together.runs}


ORDER = [
    BlockPart(1, "host", ("b", "a")),
    BlockPart(2, "host", ("a", "b")),
]


def test_interleaved_conditions_are_up_together() -> None:
    executor = InMemory()
    executor.carry_out(groups(ORDER, interleaved=True))
    assert executor.starts == [["b", "a"], ["a", "b"]]


def test_in_blocks_one_condition_follows_the_other() -> None:
    executor = InMemory()
    executor.carry_out(groups(ORDER, interleaved=False))
    assert executor.starts == [["b"], ["a"], ["a"], ["b"]]


def test_what_is_done_is_not_repeated_and_numbers_stay() -> None:
    executor = InMemory()
    executor.carry_out(groups(ORDER, interleaved=False), until=3)
    assert list(groups(ORDER, interleaved=False, done=executor.done)) == [
        Together(2, "host", ((4, "b"),))
    ]
    executor.carry_out(groups(ORDER, interleaved=False, done=executor.done))
    assert executor.starts == [["b"], ["a"], ["a"], ["b"]]
    assert list(groups(ORDER, interleaved=False, done=executor.done)) == []


def test_an_interleaved_block_is_repeated_as_a_whole() -> None:
    assert list(groups(ORDER, interleaved=True, done={1, 2, 3})) == [
        Together(2, "host", ((3, "a"), (4, "b")))
    ]


def test_every_block_holds_every_condition_in_every_environment_once() -> None:
    order = order_of_runs(1, 20, ["host", "netns"], ["a", "b", "c"])
    seen = Counter((part.block, part.group) for part in order)
    assert seen == Counter((b, e) for b in range(1, 21) for e in ("host", "netns"))
    assert all(sorted(part.compared) == ["a", "b", "c"] for part in order)


def test_the_order_is_random_and_the_seed_decides_it() -> None:
    def of(seed: int, blocks: int = 300) -> list[BlockPart]:
        return order_of_runs(seed, blocks, ["host"], ["a", "b", "c"])

    assert of(1) == of(1)
    assert of(1) != of(2)
    assert of(1, 5) == of(1)[:5]
    counts = Counter(part.compared for part in of(1))
    assert len(counts) == 6
    # 300 blocks over 6 orders: 50 each; 25 is 4 standard deviations away.
    assert min(counts.values()) > 25


def test_every_block_has_slices_of_its_own() -> None:
    seeds = [load_seed(7, block) for block in range(1, 9)]
    assert len(set(seeds)) == 8
    assert seeds == [load_seed(7, block) for block in range(1, 9)]
