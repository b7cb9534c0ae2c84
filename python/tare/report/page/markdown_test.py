# SPDX-License-Identifier: Apache-2.0
"""Comments, read by a Markdown parser of its own."""

import re
from dataclasses import replace
from typing import Any

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tare.report.page.markdown import code, comment, prose
from tare.verdict import Comparison, Judgement

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "</summary></details>",
    "a|b\nc",
    "`code` ``x``",
    "`",
    "*bold* _it_ ~~no~~",
    "[link](https://example.org) ![picture](x)",
    "&lt;b&gt; \\",
    "# heading",
    "<!-- ",
    "$$x$$",
]


def judgement(name: str = "new", warnings: tuple[str, ...] = ()) -> Judgement:
    known: dict[str, Any] = {
        "environment": "host",
        "baseline": "old",
        "condition": name,
        "span": "request",
        "budget": 0.03,
        "runs_baseline": 8,
        "runs_condition": 7,
        "reason": f"The median of {name} is 12.0 % higher.",
        "verdict": "slower",
        "relative": 0.12,
        "baseline_value": 50_000.0,
        "condition_value": 56_000.0,
        "low": 0.1,
        "high": 0.14,
    }
    return Judgement(
        (
            Comparison(metric="p50", role="primary", **known),
            Comparison(metric="p99", role="exploratory", **known),
        ),
        warnings,
    )


def tokens(text: str) -> list[Token]:
    return [leaf for token in PARSER.parse(text) for leaf in (token, *(token.children or ()))]


def cells(text: str) -> list[list[str]]:
    """The rows of all tables, each cell as a reader sees it."""
    found: list[list[str]] = []
    for token in PARSER.parse(text):
        if token.type == "tr_open":
            found.append([])
        elif token.type == "inline" and found and token.level >= 3:
            leaves = token.children or []
            kept = (leaf.content for leaf in leaves if leaf.type in ("text", "code_inline"))
            found[-1].append("".join(kept))
    return found


def test_what_decides_stands_in_a_table_and_all_else_is_folded() -> None:
    text = comment(judgement(warnings=("mind this",)))
    assert text.startswith("### Tare: 1 slower\n")
    head, first, other_head, other = cells(text)
    assert len(head) == len(first) == 9
    assert first[:4] == ["slower", "new, host", "old", "p50"]
    assert [cell.replace("\u00a0", " ") for cell in first[4:8]] == [
        "50.0 µs → 56.0 µs",
        "+12.0 %",
        "+10.0 to +14.0 %",
        "8+7",
    ]
    assert "reason" not in other_head
    assert other[3] == "p99"
    assert text.index("<details>") > text.index("p50")
    assert text.count("<details>") == text.count("</details>") == 2
    assert "mind this" in text[text.rindex("<details>") :]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_cannot_mark_up(name: str) -> None:
    text = comment(judgement(name, (name,)))
    expected = comment(judgement("new", ("mind",)))
    assert [len(row) for row in cells(text)] == [len(row) for row in cells(expected)]
    markup = [token.type for token in tokens(text) if token.type not in ("text", "html_inline")]
    assert markup == [token.type for token in tokens(expected) if token.type != "text"]
    html = [token.content for token in tokens(text) if token.type.startswith("html")]
    assert all(re.fullmatch(r"(</?(details|summary)>|[^<]|<!-- -->)*", content) for content in html)


@pytest.mark.parametrize("name", [*HOSTILE, "``", "a`", "plain"])
def test_a_name_is_shown_as_it_is(name: str) -> None:
    (_, row) = cells(f"| a |\n|---|\n| {code(name)} |")
    assert row == [" ".join(name.split())]


def test_nobody_is_called_and_no_issue_is_linked() -> None:
    assert prose("@everyone and #12 of a@b") == "@<!-- -->everyone and \\#<!-- -->12 of a@b"


def test_a_comment_stays_short_enough() -> None:
    """The worst that GitHub can be given: names that grow by being escaped, in all places."""
    name = "@" * 10_000
    many = judgement(name, tuple(f"warning {number} {name}" for number in range(500)))
    text = comment(replace(many, comparisons=many.comparisons * 150))
    assert len(text) < 65_536
    assert re.search(r"and \d+ more: \d+ slower", text)
    assert re.search(r"- and \d+ more\n", text)


def test_what_has_no_place_is_what_matters_least() -> None:
    first = judgement().comparisons[0]
    spans = [
        replace(first, verdict=word, span=f"{word} {number}")
        for number in range(150)
        for word in ("unchanged", "faster")
    ]
    slower = replace(first, span="the one")
    text = comment(Judgement((*spans, slower)))
    assert text.startswith("### Tare: 1 slower, 150 faster, 150 unchanged\n")
    rows = cells(text)
    assert rows[1][1] == "new, host, the one"
    assert f"and {302 - len(rows)} more: " in text


def test_a_few_hundred_short_rows_have_their_place() -> None:
    first, other = judgement().comparisons
    text = comment(Judgement((*[first] * 100, *[other] * 100)))
    assert len(cells(text)) > 150
