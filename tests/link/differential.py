# SPDX-License-Identifier: Apache-2.0
"""Random calls on both ends of connections, with and without a link, and the first difference.

A set with EPOLLET may report EPOLLIN once more than without a link, as epoll(7) allows: bytes that
go back to TCP are an edge of the kernel's. It must not miss one.

`python -m tests.link.differential SEED OPERATIONS` repeats a run, and
`python -m tests.link.differential SEED LENGTH MESSAGES` one of changes behind every byte.
"""

import re
import select
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from tests.link import linked
from tests.once import OUT, compiled, shared
from tests.waiting import SECONDS

SOURCES = Path(__file__).parent / "random"
_EDGES = re.compile(r"(?P<number>\d+) epoll_wait_edges = \d+(?P<events>( \d+:[0-9a-f]+)*)")


@dataclass(frozen=True)
class Comparison:
    """The same calls without and with a link."""

    seed: int
    plain: list[str]
    run: linked.Linked

    @property
    def difference(self) -> str | None:
        """The first line that differs, with the number of its operation."""
        for plain, line in zip_longest(self.plain, self.run.output.splitlines()):
            if plain != line and not (plain and line and _has_one_edge_more(plain, line)):
                return f"seed {self.seed}: without a link: {plain}; with a link: {line}"
        return None


def _has_one_edge_more(plain: str, line: str) -> bool:
    found = [_EDGES.fullmatch(text) for text in (plain, line)]
    if found[0] is None or found[1] is None or found[0]["number"] != found[1]["number"]:
        return False
    before, after = (_events(match["events"]) for match in found if match)
    return all(
        after.get(data, 0) in (before.get(data, 0), before.get(data, 0) | select.EPOLLIN)
        for data in before.keys() | after.keys()
    )


def _events(text: str) -> dict[str, int]:
    """The events of each member of a set, by its data."""
    return {data: int(bits, 16) for data, bits in (word.split(":") for word in text.split())}


def program(name: str) -> str:
    options = ("-O1", "-w", "-pthread", "-o", OUT)
    return str(compiled(name, "cc", *options, SOURCES / f"{name}.c"))


def compare(seed: int, operations: int) -> Comparison:
    """Makes this number of calls; every second seed uses links from the first message on."""
    return _compare(seed, program("random_calls"), str(seed), str(operations))


def compare_boundaries(seed: int, length: int, messages: int) -> Comparison:
    """Changes streams of `length` bytes behind each byte, in every way to read them meanwhile; then
    sends this number of messages each way, in threads."""
    return _compare(seed, program("boundaries"), str(seed), str(length), str(messages))


def _compare(seed: int, *words: str) -> Comparison:
    plain = subprocess.run(words, check=True, capture_output=True, text=True, timeout=SECONDS)
    return Comparison(seed, plain.stdout.splitlines(), linked.run(*words, eager=seed % 2 == 0))


def coverage(comparisons: Iterable[Comparison]) -> Counter[str]:
    """How often each operation was compared."""
    lines = (line.split() for comparison in comparisons for line in comparison.plain)
    return Counter(words[1] for words in lines if words[0].isdigit())


def table(counts: Counter[str]) -> str:
    lines = ["| operation | times |", "|---|---|"]
    lines += [f"| `{name}` | {times:,} |" for name, times in sorted(counts.items())]
    return "\n".join(lines)


if __name__ == "__main__":
    with shared():
        numbers = [int(word) for word in sys.argv[1:]]
        done = compare(*numbers) if len(numbers) == 2 else compare_boundaries(*numbers)
    print(done.run.output, end="")
    print(table(coverage([done])))
    sys.exit(done.difference)
