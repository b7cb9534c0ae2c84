# SPDX-License-Identifier: Apache-2.0
"""Random calls on both ends of connections, with and without a link, and the first difference.

`python -m tests.link.differential SEED OPERATIONS` repeats a run.
"""

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
            if plain != line:
                return f"seed {self.seed}: without a link: {plain}; with a link: {line}"
        return None


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
