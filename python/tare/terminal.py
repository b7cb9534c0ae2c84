# SPDX-License-Identifier: Apache-2.0
"""Text of unknown origin on a terminal."""

import json
import os
import unicodedata
from collections.abc import Iterator, Sequence
from typing import TextIO

HARMFUL = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of Unicode that move the cursor, change colours or order, or cannot be seen."""
INVISIBLE = frozenset("\u115f\u1160\u3164\uffa0")
"""Letters without a shape."""
SELECTORS = range(0xE0100, 0xE01F0)
"""Variants of a letter: any number of them can hide bytes behind it."""

LEAST_NAME = 20
"""Characters of a name that is shortened."""


def printable(text: str, keep: str = "") -> str:
    """`text` with such characters as escapes (`\\x1b`, `\\u202e`), except those in `keep`.

    Names, paths, log lines and errors can come from strangers, and a terminal obeys what it reads.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(one if one in keep or _is_harmless(one) else _escaped(one) for one in text)


def json_text(value: object, indent: int | None = 2) -> str:
    """`value` as JSON, in which all such characters are escapes."""
    # JSON in ASCII may have DEL as it is.
    return json.dumps(value, indent=indent).replace("\x7f", "\\u007f")


def both_ends(text: object, limit: int) -> str:
    """`printable` text without its middle where it is longer: names of one kind differ in their
    ends."""
    clean, limit = printable(str(text)), max(limit, 1)
    end = (limit - 1) // 2
    if len(clean) <= limit:
        return clean
    return f"{clean[: limit - 1 - end]}…{clean[len(clean) - end :]}"


def aligned(rows: Sequence[Sequence[str]], width: int) -> Iterator[list[str]]:
    """The cells of each row, as wide as their columns; names in the first column are shortened so
    that all columns together have `width` characters, but not below 20."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    room = max(LEAST_NAME, width - sum(widths[1:]))
    names = [both_ends(row[0], room) for row in rows]
    longest = max(map(len, names))
    for name, row in zip(names, rows, strict=True):
        cells = (cell.rjust(size) for cell, size in zip(row[1:], widths[1:], strict=True))
        yield [name.ljust(longest), *cells]


def markup(text: str) -> str:
    """`text` for Rich, which shows it as it is, with such characters as escapes."""
    from rich.markup import escape

    return escape(printable(text))


STYLES = {
    "bold": 1, "dim": 2, "reverse": 7, "red": 31, "green": 32, "yellow": 33, "magenta": 35,
    "cyan": 36,
}  # fmt: skip
"""Codes of ECMA-48, "Select Graphic Rendition"."""


def has_colours(stream: TextIO) -> bool:
    """Whether a stream is a terminal that shows styles; not with NO_COLOR (no-color.org)."""
    dumb = os.environ.get("TERM", "dumb") in ("dumb", "unknown")
    forced = os.environ.get("FORCE_COLOR", "")
    return not os.environ.get("NO_COLOR") and bool(forced or (stream.isatty() and not dumb))


def styled(text: str, style: str) -> str:
    """`text` in a style for a terminal, words of `STYLES`."""
    codes = ";".join(str(STYLES[word]) for word in style.split())
    return f"\x1b[{codes}m{text}\x1b[0m" if codes else text


def _is_harmless(character: str) -> bool:
    is_seen = character not in INVISIBLE and ord(character) not in SELECTORS
    return is_seen and unicodedata.category(character) not in HARMFUL


def _escaped(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
