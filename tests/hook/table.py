# SPDX-License-Identifier: Apache-2.0
"""What is tested, for docs/internals/hook.md: `python -m tests.hook.table` writes it there.

Every case says in its `// covers:` lines which functions of libc it is about; that it calls
them under the hook is a part of its test.
"""

import ast
import re
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs" / "internals" / "hook.md"
CASES = HERE / "cases"
SYMBOLS = ROOT / "crates" / "interpose" / "src" / "libc_functions.rs"
HOOK = ROOT / "crates" / "hook" / "preload" / "src" / "lib.rs"
LOG = ROOT / "crates" / "log" / "library" / "src" / "restrictions.rs"
# Without a frame, and so not in the table of symbols: the function behind each group.
NAKED = {"observed": ("syscall",), "vfork": ("vfork", "__vfork")}
BEGIN, END = "<!-- made by `python -m tests.hook.table` -->\n", "<!-- end -->\n"
# Whole programs, and what stands beside the hook in a program.
MODULES = (
    *HERE.glob("programs/test_*.py"),
    HERE / "test_stacking.py",
    HERE / "test_debuggers.py",
)


def groups() -> dict[str, tuple[str, ...]]:
    """The functions of each group, as `interpose` has them."""
    found: dict[str, list[str]] = {}
    group = ""
    for line in SYMBOLS.read_text().splitlines():
        if begin := re.search(r"\[(\w+) \$\(\$rest:ident\)\*\]|^macro_rules! (\w+)_symbols", line):
            group = begin[1] or begin[2]
        if function := re.match(r" +fn (\w+)\(", line):
            found.setdefault(group, []).append(function[1])
    return {group: (*found.get(group, ()), *NAKED.get(group, ())) for group in (*found, *NAKED)}


def exported(library: Path) -> tuple[str, ...]:
    """The groups that a library exports."""
    (names,) = re.findall(r"interpose::export! \{ \w+: ([\w ]+) \}", library.read_text())
    return tuple(names.split())


def symbols(library: Path = HOOK) -> tuple[str, ...]:
    """Every function that a library stands in front of."""
    return tuple(symbol for group in exported(library) for symbol in groups()[group])


def uncounted() -> set[str]:
    """The functions of the hook that no statistics are of."""
    return {symbol for group in NAKED for symbol in groups()[group]}


def covers(case: Path) -> set[str]:
    """The functions that a case says it is about."""
    lines = re.findall(r"^// covers: (.*)", case.read_text(), re.MULTILINE)
    return set(re.findall(r"\w+", " ".join(lines)))


def cases() -> dict[str, list[str]]:
    """The cases of each function."""
    found: dict[str, list[str]] = {symbol: [] for symbol in symbols()}
    for case in sorted(CASES.glob("*.c")):
        for symbol in covers(case):
            found.setdefault(symbol, []).append(case.stem)
    return found


def programs() -> dict[str, str]:
    """Programs and what they do in their tests: the first lines of those."""
    texts = [ast.get_docstring(ast.parse(path.read_text())) or "" for path in MODULES]
    lines = sorted((text.split("\n")[0] for text in texts), key=str.lower)
    return {name: what for name, _, what in (line.partition(": ") for line in lines)}


def rows(*cells: tuple[str, str]) -> str:
    return "".join(f"| {left} | {right} |\n" for left, right in cells)


def text() -> str:
    """Both tables."""
    functions = [(f"`{symbol}`", ", ".join(names)) for symbol, names in cases().items()]
    line = ("---", "---")
    return "\n".join(
        [
            rows(("function", "cases"), line, *functions),
            rows(("beside or under the hook", "what it does"), line, *programs().items()),
        ]
    )


def renewed(page: str) -> str:
    """The page with these tables between its marks."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}{text()}{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text()))
