# SPDX-License-Identifier: Apache-2.0
"""The other end of a link changes whatever it likes in the memory that both share.

`python -m tests.link.mutations SEED NUMBER` makes this number of changes between calls.
"""

import re
import sys
from pathlib import Path

from tests.link import linked
from tests.once import OUT, compiled, shared

SOURCE = Path(__file__).with_suffix(".c")


def run(seed: int, number: int) -> tuple[int, int]:
    """Returns the numbers of links and of connections that were reset; raises AssertionError if a
    call crashed, did not return, or returned bytes that nobody sent."""
    program = str(compiled("mutations", "cc", "-O1", "-w", "-o", OUT, SOURCE))
    done = linked.run(program, str(seed), str(number))
    found = re.search(r"(\d+) links, (\d+) resets", done.output)
    said = f"seed {seed}: {done.code} {done.output} {done.errors}"
    assert done.code == 0, said
    assert found, said
    return int(found[1]), int(found[2])


if __name__ == "__main__":
    with shared():
        print(*run(*map(int, sys.argv[1:])))
