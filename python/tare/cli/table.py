# SPDX-License-Identifier: Apache-2.0
"""The verdict table on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.table import Table

    from tare.verdict import Comparison, Judgement

COLOURS = {
    "slower": "bold red",
    "faster": "bold green",
    "unchanged": "bold cyan",
    "shape-changed": "bold magenta",
    "inconclusive": "bold yellow",
    "invalid": "bold red reverse",
}


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
    from rich.markup import escape

    from tare.verdict.told import told

    console.print(_table(judgement))
    for one in judgement.comparisons:
        if one.role == "primary":
            name = escape(_name(one, _many(judgement)))
            console.print(f"[bold]{name}[/]: {escape(one.reason)}", highlight=False)
    for paragraph in told(judgement):
        name, rest = paragraph.split(" (", 1)
        console.print(f"\n[bold]{escape(name)}[/] ({escape(rest)}", highlight=False)
    if history:
        console.print()
    for line in history:
        console.print(escape(line), highlight=False)
    if judgement.warnings:
        console.print()
    for warning in judgement.warnings:
        console.print(f"[yellow]warning:[/] {escape(warning)}", highlight=False)


def _table(judgement: Judgement) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    comparisons = judgement.comparisons
    with_environment = _many(judgement)
    with_span = len({one.span for one in comparisons}) > 1
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for heading in ("verdict", "condition"):
        table.add_column(heading, no_wrap=True)
    if with_environment:
        table.add_column("environment", no_wrap=True)
    if with_span:
        table.add_column("span")
    table.add_column("metric", no_wrap=True)
    table.add_column("effect", justify="right", min_width=9)  # it alone can go over two lines
    for heading in ("95 % interval", "runs"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in comparisons:
        primary = one.role == "primary"
        row = [
            Text(one.verdict, COLOURS[one.verdict] if primary else "dim"),
            Text(one.condition),
            *([Text(one.environment)] if with_environment else []),
            *([Text(one.span)] if with_span else []),
            Text(one.metric),
            *(Text(cell) for cell in (_effect(one), _interval(one), _runs(one))),
        ]
        table.add_row(*row, style=None if primary else "dim")
    return table


def _many(judgement: Judgement) -> bool:
    """Whether there is more than one environment to tell apart."""
    return len({one.environment for one in judgement.comparisons}) > 1


def _name(one: Comparison, with_environment: bool) -> str:
    environment = one.environment if with_environment else ""
    parts = (one.condition, environment, one.span if one.span != "request" else "")
    return ", ".join(part for part in parts if part)


def _effect(one: Comparison) -> str:
    from tare.verdict.words import duration, percent

    if one.relative is None or one.absolute_ns is None:
        return "-"
    return f"{percent(one.relative)} ({duration(one.absolute_ns, signed=True)})"


def _interval(one: Comparison) -> str:
    from tare.verdict.words import percent

    if one.low is None or one.high is None:
        return "-"
    return f"{percent(one.low).removesuffix(' %')} to {percent(one.high)}"


def _runs(one: Comparison) -> str:
    return f"{one.runs_baseline}+{one.runs_condition}"
