# SPDX-License-Identifier: Apache-2.0
"""The verdict table on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tare.terminal import markup

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from tare.verdict import Comparison, Judgement

COLOURS = {
    "slower": "bold red",
    "faster": "bold green",
    "unchanged": "bold cyan",
    "shape-changed": "bold magenta",
    "inconclusive": "bold yellow",
    "invalid": "bold red reverse",
}
WARNINGS = 5
"""How many are printed; the rest are counted."""


def written(judgement: Judgement, history: Sequence[str] = ()) -> str:
    """The comparisons, the reason of each verdict, the published test, and warnings.

    In the width and colours of the terminal on stdout. `history` are lines about earlier results.
    """
    from rich.console import Console

    console = Console()
    # Printed by Rich itself, an output that nobody reads would end the program.
    with console.capture() as capture:
        _print(console, judgement, history)
    return capture.get()


def _print(console: Console, judgement: Judgement, history: Sequence[str]) -> None:
    from tare.published import told

    for line in _table(judgement):
        console.print(line, soft_wrap=True, highlight=False)
    console.print()
    for one in judgement.comparisons:
        if one.role == "primary":
            name = markup(_name(one, _many(judgement)))
            console.print(f"[bold]{name}[/]: {markup(one.reason)}", highlight=False)
    for paragraph in told(judgement):
        name, rest = paragraph.split(" (", 1)
        console.print(f"\n[bold]{markup(name)}[/] ({markup(rest)}", highlight=False)
    if history:
        console.print()
    for line in history:
        console.print(markup(line), highlight=False)
    if judgement.warnings:
        console.print()
    for warning in judgement.warnings[:WARNINGS]:
        console.print(f"[yellow]warning:[/] {markup(warning)}", highlight=False)
    if (more := len(judgement.warnings) - WARNINGS) > 0:
        console.print(f"and {more} more: see --json", highlight=False)


def _table(judgement: Judgement) -> Iterator[str]:
    """A line for each place, and below it one for each of its metrics, in common columns."""
    places: dict[tuple[str, ...], list[Comparison]] = {}
    for one in judgement.comparisons:
        places.setdefault(one.place, []).append(one)
    rows = {one: _cells(one) for one in judgement.comparisons}
    widths = [max(map(len, column)) for column in zip(*rows.values(), strict=True)]
    for compared in places.values():
        first = compared[0]
        name = _name(first, _many(judgement))
        runs = f"{first.runs_baseline}+{first.runs_condition} runs"
        yield f"[bold]{markup(name)}[/] against {markup(first.baseline)}, {runs}"
        for one in compared:
            word, metric, baseline, condition, effect, interval = (
                cell.rjust(width) if place > 1 else cell.ljust(width)
                for place, (cell, width) in enumerate(zip(rows[one], widths, strict=True))
            )
            primary = one.role == "primary"
            style = COLOURS[one.verdict] if primary else "dim"
            rest = f"{metric}  {baseline} -> {condition}  {effect}  {interval}"
            rest = rest if primary else f"[dim]{rest}[/]"
            yield f"  [{style}]{word}[/]  {rest}"


def _many(judgement: Judgement) -> bool:
    """Whether there is more than one environment to tell apart."""
    return len({one.environment for one in judgement.comparisons}) > 1


def _name(one: Comparison, with_environment: bool) -> str:
    environment = one.environment if with_environment else ""
    parts = (one.condition, environment, one.span if one.span != "request" else "")
    return ", ".join(part for part in parts if part)


def _cells(one: Comparison) -> tuple[str, ...]:
    """The verdict, the metric, both values, the effect, and its interval."""
    from tare.verdict.words import change, value

    def amount(number: float | None) -> str:
        return "-" if number is None else value(number, one.unit)

    def short(effect: float) -> str:
        return change(effect, one.unit).replace("points", "pt")

    effect = "-" if one.relative is None else short(one.relative)
    interval = "-"
    if one.low is not None and one.high is not None:
        low, high = short(one.low), short(one.high)
        interval = f"{low.partition(' ')[0]} to {high}"
    values = (amount(one.baseline_value), amount(one.condition_value))
    return (one.verdict, one.metric, *values, effect, interval)
