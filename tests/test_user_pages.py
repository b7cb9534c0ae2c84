# SPDX-License-Identifier: Apache-2.0
"""Pages for users keep the rules of language: words, lengths, commands that exist.

Each failure is one line: place, rule, text. `python -m tests.test_user_pages` writes the index of
decisions.
"""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
DECISIONS = DOCS / "decisions"
EXCEPTIONS = tomllib.loads((Path(__file__).parent / "user_pages.toml").read_text())
GENERATED = {DOCS / "results.md"}
PAGES = sorted(
    {
        *(ROOT / f"{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING", "SECURITY")),
        *DOCS.glob("*.md"),
        *(DOCS / "formats" / f"{name}.md" for name in ("inputs", "verdicts")),
    }
    - GENERATED
)
PAGE_WORDS, PARAGRAPH_WORDS, TABLE_LINE, CHANGE_LINE = 1500, 80, 200, 200
UNITS = "second|minute|request|block|run|thread|slice|event|call"
# What not to write, and what to write instead.
WORDS = {
    r"\btold\b|\btells of\b|\bis said\b|\bare said\b|\bin words\b": "reported, warns, prints",
    r"\bstands? (in|beside|for)\b": "is in, is next to, means",
    r"\bso many\b|\bhow many there were\b": "the number of",
    r"\bdoes not speak of\b|\bof what comes\b": "omitted settings; of the input",
    rf"\b(\d\S*|requests|times|events|bytes|lines|time|calls) a ({UNITS})\b": "per",
    r"\bones\b|\bthe one (that|which|of)\b|\bthat of\b|\bthose of\b": "the noun itself",
    r"\b(is|are|was|were) gone\b": "exited, was deleted",
    r"\b(is|are) there\b(?! (a|an|no)\b)": "exists",
    r"\bcame to\b|\bbears\b|\bgoes by\b": "reached, supports, uses",
    r"\bnobody\b|\bsomebody\b": "no process, the program",
    r"\bwhose\b[^.;:|]*\bare\b|\bof which\b[^.;:|]*\bhalf\b": "two sentences",
}


def prose(text: str) -> str:
    """The text with code and comments blanked, on the same lines."""

    def blank(found: re.Match[str]) -> str:
        return "\n" * found[0].count("\n")

    text = re.sub(r"<!--.*?-->|^```.*?^```$", blank, text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]+`", "CODE", text)


def count(text: str) -> int:
    return len(re.findall(r"\S*\w\S*", text))


def paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Paragraphs and items of lists with their lines, without tables and headings."""
    begin, lines = 0, list[str]()
    for number, line in enumerate([*text.splitlines(), ""], 1):
        is_item = re.match(r"\s*([-*]|\d+\.) ", line)
        if lines and (not line.strip() or is_item or line.startswith(("|", "#"))):
            yield begin, " ".join(lines)
            lines = []
        if line.strip() and not line.startswith(("|", "#")):
            begin = begin if lines else number
            lines.append(line.strip())


def faults(path: Path) -> Iterator[str]:
    """What breaks a rule on a page."""
    name, text = path.relative_to(ROOT), path.read_text(encoding="utf-8")
    plain = prose(text)
    for number, line in enumerate(plain.splitlines(), 1):
        for words, instead in WORDS.items():
            for found in re.finditer(words, line, re.IGNORECASE):
                yield f"{name}:{number}: '{found[0]}' (expected: {instead})"
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("|") and len(line) > TABLE_LINE:
            yield f"{name}:{number}: table line of {len(line)} characters (limit {TABLE_LINE})"
        if path.name == "CHANGELOG.md" and line.startswith("- ") and len(line) > CHANGE_LINE:
            yield f"{name}:{number}: change of {len(line)} characters (limit {CHANGE_LINE})"
    for number, paragraph in paragraphs(plain):
        if count(paragraph) > PARAGRAPH_WORDS:
            yield (
                f"{name}:{number}: paragraph of {count(paragraph)} words (limit {PARAGRAPH_WORDS})"
            )
    if str(name) not in EXCEPTIONS["long_pages"] and count(plain) > PAGE_WORDS:
        yield f"{name}: page of {count(plain)} words (limit {PAGE_WORDS})"


def commands(text: str) -> Iterator[tuple[int, list[str]]]:
    """The calls of `tare` in code, each as its words, with their lines."""
    in_block = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            in_block = not in_block
            continue
        for code in [line.split(" #")[0]] if in_block else re.findall(r"`([^`\n]+)`", line):
            quoted = re.sub(r"'[^']*'|\"[^\"]*\"", "TEXT", code)
            for call in re.findall(r"(?:^|[|;&(] *|\$ |do )(tare(?: +[^|;&)]+)?)", quoted):
                yield number, call.split()


@cache
def help_of(*command: str) -> str:
    """The help of a command; empty if there is no such command."""
    done = subprocess.run(
        [sys.executable, "-m", "tare", *command, "--help"],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "python"), "COLUMNS": "200"},
    )
    return done.stdout if done.returncode == 0 else ""


def accepts(command: tuple[str, ...], option: str) -> bool:
    return re.search(rf"(?<![\w-]){option}(?![\w-])", help_of(*command)) is not None


@cache
def all_commands() -> tuple[tuple[str, ...], ...]:
    """Every command and subcommand, as the lists of commands in the help texts have them."""

    def listed(text: str) -> list[str]:
        section = text.partition("\nCommands:\n")[2].partition("\n\n")[0]
        return re.findall(r"^  ([a-z][\w-]*) ", section, re.MULTILINE)

    tops = [(name,) for name in listed(help_of())]
    below = [(*top, name) for top in tops for name in listed(help_of(*top)) if name != "help"]
    return (*tops, *below)


def wrong_calls(path: Path) -> Iterator[str]:
    """Commands on a page that do not exist, and options that they do not accept."""
    name, text = path.relative_to(ROOT), path.read_text(encoding="utf-8")
    for number, (_, *words) in commands(text):
        if not words or not re.fullmatch(r"[a-z]+", words[0]):
            continue
        command: tuple[str, ...] = (words[0],)
        if (words[0],) not in all_commands():
            yield f"{name}:{number}: tare {words[0]}: no such command"
            continue
        if len(words) > 1 and (words[0], words[1]) in all_commands():
            command = (words[0], words[1])
        own = words[: words.index("--")] if "--" in words else words
        for option in (re.split(r"[=\[\].,'\"]", word)[0] for word in own):
            if re.fullmatch(r"--[a-z][\w-]*", option) and not accepts(command, option):
                yield f"{name}:{number}: tare {' '.join(command)} does not accept {option}"
    for number, line in enumerate(text.splitlines(), 1):
        for code in re.findall(r"`(--[a-z][^`\n]*)`", line):
            option = re.split(r"[ =]", code)[0]
            if EXCEPTIONS["other_options"].keys() & {code, option}:
                continue
            if not any(accepts(command, option) for command in ((), *all_commands())):
                yield f"{name}:{number}: no command accepts {option}"


def decisions() -> dict[str, str]:
    """File names of the records, and their headings without the number."""
    return {
        path.name: re.findall(r"^# (?:\d+[.:] )?(.*)$", path.read_text(), re.MULTILINE)[0]
        for path in sorted(DECISIONS.glob("[0-9]*.md"))
    }


def index() -> str:
    lines = (f"- [{name[:4]}: {title}]({name})\n" for name, title in decisions().items())
    return f"""\
<!-- SPDX-License-Identifier: Apache-2.0 -->
# Decisions

Choices that others will ask about: context, choice, what was measured, what was rejected. \
`python -m tests.test_user_pages` writes this list.

{"".join(lines)}"""


def test_pages_keep_the_rules_of_language() -> None:
    found = [fault for page in PAGES for fault in faults(page)]
    assert not found, "\n" + "\n".join(found)


def test_commands_on_pages_exist() -> None:
    # Changes may name options that were removed later.
    pages = [page for page in PAGES if page.name != "CHANGELOG.md"]
    found = [fault for page in pages for fault in wrong_calls(page)]
    assert not found, "\n" + "\n".join(found)


def test_help_keeps_the_rules_of_language() -> None:
    found = [
        f"tare {' '.join(command)} --help: '{fault[0]}' (expected: {instead})"
        for command in ((), *all_commands())
        for words, instead in WORDS.items()
        for fault in re.finditer(words, help_of(*command), re.IGNORECASE)
    ]
    assert not found, "\n" + "\n".join(found)


def test_results_name_no_folder_of_the_machine_that_measured() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in GENERATED)
    assert re.findall(r"\S*/(?:home|root|tmp|work)/\S*", text) == []


def test_the_index_of_decisions_is_complete() -> None:
    there = (DECISIONS / "README.md").read_text(encoding="utf-8")
    assert there == index(), "run python -m tests.test_user_pages"


def test_exceptions_are_needed() -> None:
    pages = {str(page.relative_to(ROOT)) for page in PAGES}
    assert pages >= EXCEPTIONS["long_pages"].keys()
    texts = [page.read_text(encoding="utf-8") for page in PAGES]
    for option in EXCEPTIONS["other_options"]:
        assert any(f"`{option}" in text for text in texts), option


def test_a_fault_is_found_by_each_rule() -> None:
    for text in (
        "It is told.",
        "It stands in a file.",
        "100 requests a second",
        "Others are gone.",
    ):
        assert any(re.search(words, text, re.IGNORECASE) for words in WORDS), text
    for text in ("It sends a request.", "There is one.", "`told`", "Two of them."):
        assert not any(re.search(words, prose(text), re.IGNORECASE) for words in WORDS), text
    assert [words for _, words in paragraphs("a\nb\n\n- c\n- d\n| e |\n")] == ["a b", "- c", "- d"]
    assert list(commands("`tare run PLAN --out X`")) == [(1, ["tare", "run", "PLAN", "--out", "X"])]


if __name__ == "__main__":
    (DECISIONS / "README.md").write_text(index(), encoding="utf-8")
