# SPDX-License-Identifier: Apache-2.0
"""What is done with verdicts, whoever measured: printed, remembered, held against a gate."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tare.cli.shared.options import AsJson, option
from tare.cli.shared.streams import silence, tell
from tare.errors import GateError, InputError
from tare.terminal import json_text

if TYPE_CHECKING:
    from tare.report.result.history import Standing
    from tare.verdict import Judgement


@dataclass(frozen=True)
class OutcomeOptions:
    """As typed."""

    as_json: AsJson = False
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help="Print Markdown, for a comment on a pull request.")
    ] = False
    fail_on: Annotated[
        list[str] | None,
        option(
            "--fail-on",
            "VERDICT[,VERDICT...]",
            "Exit with code 3 if a primary verdict is one of these: slower (includes shape-changed"
            " with a slower tail), inconclusive, invalid. The results are printed first.",
        ),
    ] = None
    history: Annotated[
        Path | None,
        option(
            "--history",
            "DIR",
            "Append the primary verdicts to DIR/history.jsonl and compare them with earlier"
            " verdicts.",
        ),
    ] = None
    labels: Annotated[
        list[str] | None,
        option(
            "--label",
            "NAME=VALUE",
            "Store this with the verdicts of --history. Repeatable. Default: commit=$GITHUB_SHA.",
        ),
    ] = None


@dataclass(frozen=True)
class Outcome:
    """What the user wants done with the verdicts; made before anything is measured or read."""

    as_json: bool
    as_markdown: bool
    fail_on: tuple[str, ...]
    history: Path | None
    labels: dict[str, str]

    @classmethod
    def wanted(cls, typed: OutcomeOptions) -> Outcome:
        """From the options as typed. Raises InputError for what cannot be done."""
        labels, history = typed.labels or (), typed.history
        if typed.as_json and typed.as_markdown:
            raise InputError("--json and --markdown: choose one of them")
        if labels and history is None:
            raise InputError(f"--label {labels[0]}: needs --history, which stores it")
        words = _words(typed.fail_on or ())
        outcome = cls(typed.as_json, typed.as_markdown, words, history, _labels(labels))
        if history is not None:
            from tare.report.result.history import check

            check(history)
        return outcome

    def tell(self, judgement: Judgement, *, published: bool = False, after: str = "") -> None:
        """Remembers and prints. `published` asks for its key in the JSON; `after` ends a table.

        Raises OSError where the history could not be written, after everything was printed. A
        reader of a pipe who has seen enough is no error: a gate still has to hold.
        """
        standing, failure = None, None
        if self.history is not None:
            from tare.report.result.history import remember

            try:
                standing = remember(self.history, judgement, self.labels)
            except OSError as error:
                failure = error
        try:
            # What cannot be printed is an error of its own, before any gate.
            print(self._text(judgement, standing, published, after), flush=True)
        except BrokenPipeError:
            silence(sys.stdout)
        if failure is not None:
            raise failure

    def _text(
        self, judgement: Judgement, standing: Standing | None, published: bool, after: str
    ) -> str:
        if self.as_json:
            answer = judgement.to_json(published)
            if standing is not None:
                answer["history"] = standing.to_json()
            return json_text(answer)
        if self.as_markdown:
            from tare.report.page.markdown import comment

            return comment(judgement, standing)
        from tare.cli.shared.table import written

        table = written(judgement, () if standing is None else standing.lines())
        return f"{table}{after}" if after else table.removesuffix("\n")

    def gate(self, judgement: Judgement) -> None:
        """Raises GateError where a primary verdict is one of `--fail-on`; never for a smoke run."""
        from tare.verdict.rules.fail_on import hits

        if self.fail_on and judgement.smoke:
            tell("--fail-on: ignored, because this is a smoke run")
        if found := hits(judgement, self.fail_on):
            word, comparison = found[0]
            more = f", and {len(found) - 1} more" if len(found) > 1 else ""
            raise GateError(f"--fail-on {word}: {comparison}{more}")


def _words(given: Sequence[str]) -> tuple[str, ...]:
    from tare.verdict.rules.fail_on import WORDS

    words = [word.strip() for text in given for word in text.split(",")]
    for word in words:
        if word not in WORDS:
            raise InputError(f"--fail-on: found '{word}', expected one of {', '.join(WORDS)}")
    return tuple(words)


def _labels(given: Sequence[str]) -> dict[str, str]:
    commit = os.environ.get("GITHUB_SHA")
    labels = {"commit": commit} if commit else {}
    for text in given:
        name, separator, value = text.partition("=")
        if not separator or not name:
            raise InputError(f"--label: found '{text}', expected NAME=VALUE")
        labels[name] = value
    return labels
