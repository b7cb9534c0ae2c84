# SPDX-License-Identifier: Apache-2.0
"""Random calls on both ends of connections, with and without a link, and the first difference.

A set with EPOLLET may report EPOLLIN once more than without a link, as epoll(7) allows: bytes that
go back to TCP are an edge of the kernel's. It must not miss one.

`python -m tests.link.differential SEED OPERATIONS` repeats a run.
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

SOURCE = Path(__file__).parent / "random" / "random_calls.c"
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


def program() -> str:
    return str(compiled("random_calls", "cc", "-O1", "-w", "-pthread", "-o", OUT, SOURCE))


def compare(seed: int, operations: int) -> Comparison:
    """Makes this number of calls; every second seed uses links from the first message on."""
    words = [program(), str(seed), str(operations)]
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
        done = compare(*map(int, sys.argv[1:]))
    print(done.run.output, end="")
    print(table(coverage([done])))
    sys.exit(done.difference)
