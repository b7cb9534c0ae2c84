# SPDX-License-Identifier: Apache-2.0
"""The table of support, for docs/link.md: `python -m tests.link.support_table` writes it there.

The comment before each case of calls/*.c lists calls and flags, and how a link carries them;
test_calls.py compares all their results with the kernel's.
"""

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "link.md"
CALLS = sorted((Path(__file__).parent / "calls").glob("*.c"))
BEGIN, END = "<!-- made by `python -m tests.link.support_table` -->\n", "<!-- end -->\n"
WIDTH = 200
"""Of a line of the page, in characters."""
WAYS = {
    "ring": "shared memory",
    "kernel": "this call uses TCP",
    "for good": "the connection stays TCP from then on",
}


@dataclass(frozen=True)
class Case:
    """A function of a program of calls: its calls and flags by how they are carried, its text."""

    name: str
    covers: dict[str, list[str]]
    text: str


def cases() -> Iterator[Case]:
    """Every case that a program of calls runs."""
    for source in CALLS:
        yield from _cases(source.read_text())


def _cases(source: str) -> Iterator[Case]:
    before, _, main = source.partition("int main(void)")
    found = re.finditer(
        r"((?:/\* [^*]* \*/\n)*)static void (\w+)\([^)]*\) \{(.*?)^\}", before, re.M | re.S
    )
    for comments, name, body in (match.groups() for match in found):
        runs = re.findall(rf"\b{name}\(.*", main)
        if runs:
            pairs = re.findall(r"/\* ([a-z ]+): (.*?) \*/", comments)
            covers = {way: words.split() for way, words in pairs}
            yield Case(name, covers, "\n".join([body, *runs]))


def text() -> str:
    """One line per call or flag: how it is carried, and the cases."""
    found: dict[str, dict[str, list[str]]] = {way: {} for way in WAYS}
    for case in cases():
        for way, words in case.covers.items():
            for word in words:
                found[way].setdefault(word, []).append(case.name)
    lines = ["| calls and flags | carried by |\n|---|---|\n"]
    for way, shown in WAYS.items():
        names = sorted(found[way], key=lambda word: (word.isupper(), word))
        groups = textwrap.wrap(
            ", ".join(f"`{name}`" for name in names), WIDTH - len(f"|  | {shown} |")
        )
        lines += [f"| {group.rstrip(',')} | {shown} |\n" for group in groups]
    return "".join(lines)


def renewed(page: str) -> str:
    """The page with this table between its marks."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}{text()}{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text()))
