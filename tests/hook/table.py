# SPDX-License-Identifier: Apache-2.0
"""What is tested, for docs/hook.md: `python -m tests.hook.table` writes it there.

Every case says in its `// covers:` lines which functions of libc it is about; that it calls
them under the hook is a part of its test.
"""

import ast
import re
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs" / "hook.md"
CASES = HERE / "cases"
SYMBOLS = ROOT / "crates" / "interpose" / "src" / "table.rs"
# Without a frame, and so not in the library's table.
NAKED = ("vfork", "__vfork", "syscall")
BEGIN, END = "<!-- made by `python -m tests.hook.table` -->\n", "<!-- end -->\n"
# Whole programs, and what stands beside the hook in a program.
MODULES = (
    *HERE.glob("programs/test_*.py"),
    HERE / "test_stacking.py",
    HERE / "test_debuggers.py",
)


def observed() -> tuple[str, ...]:
    """The functions whose calls the libraries see, and do not count."""
    return (
        *re.findall(r"^ +fn (\w+)\(.* = SYS_\w+;", SYMBOLS.read_text(), re.MULTILINE),
        "syscall",
    )


def uncounted() -> set[str]:
    """The functions of the hook that no statistics are of."""
    return {*NAKED, *observed()}


def symbols() -> tuple[str, ...]:
    """Every function that the library stands in front of."""
    return (*re.findall(r"^ +fn (\w+)\(", SYMBOLS.read_text(), re.MULTILINE), *NAKED)


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
