# SPDX-License-Identifier: Apache-2.0
"""Lines of files that may have a line without end, as a small packed file can."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from io import BytesIO
from typing import IO

LONGEST = 2 << 20
"""Bytes of a line: longer lines are lost to the engine, too."""
BLOCK = 1 << 17


def lines(file: IO[bytes], longest: int = LONGEST) -> Iterator[bytes | None]:
    """Each line; None for a line of more than `longest` bytes, which is not held in memory."""
    begun, too_long = b"", False
    # In blocks: a limit for each line would take longer. No line within a block is above the limit.
    for block in iter(partial(file.read, min(BLOCK, longest)), b""):
        end = block.rfind(b"\n") + 1
        if not end:
            too_long = too_long or len(begun) + len(block) > longest
            begun = b"" if too_long else begun + block
            continue
        whole = begun + block[:end]
        first = whole.find(b"\n") + 1
        if too_long or first > longest:
            yield None
            whole = whole[first:]
        yield from BytesIO(whole)
        begun, too_long = block[end:], False
    if too_long:
        yield None
    elif begun:
        yield begun


def plain_lines(file: IO[bytes], longest: int = LONGEST) -> int | None:
    """The number of lines of a file of ASCII without carriage returns, and without lines that are
    empty or longer than `longest`; None for other files. A tenth of the time of `lines`.
    """
    count, unfinished, last = 0, 0, b"\n"
    for block in iter(partial(file.read, min(BLOCK, longest)), b""):
        if b"\r" in block or b"\n\n" in last + block or not block.isascii():
            return None
        first = block.find(b"\n")
        unfinished += len(block) if first < 0 else first + 1
        if unfinished > longest:
            return None
        if first >= 0:
            unfinished = len(block) - 1 - block.rfind(b"\n")
        count += block.count(b"\n")
        last = block[-1:]
    return count + (last != b"\n")
