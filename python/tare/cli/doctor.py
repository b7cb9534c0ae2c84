# SPDX-License-Identifier: Apache-2.0
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from tare.terminal import json_text, markup

if TYPE_CHECKING:
    from tare.lab.doctor import Finding

_MARKS = {"yes": "[green]yes[/]", "partly": "[yellow]partly[/]", "no": "[red]no[/]"}


def register(app: typer.Typer) -> None:
    """Adds `tare doctor`."""
    app.command()(doctor)


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List what this machine supports, and what is missing.

    The first line is a summary. For each missing feature: what does not work without it, and how
    to get it.
    """
    from tare.lab.doctor import PROBES, examine
    from tare.lab.machine.fingerprint import fingerprint

    # Ended like this, it still ends its probes and removes their folders.
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, lambda number, _: sys.exit(128 + number))
    findings = list(examine(PROBES))
    if as_json:
        answer = {
            "machine": fingerprint(),
            "probes": [finding.to_json() for finding in findings],
        }
        print(json_text(answer))
    else:
        _show(findings)


def _show(findings: Sequence["Finding"]) -> None:
    from rich.console import Console
    from rich.table import Table

    from tare.lab.doctor import summary

    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    group = None
    for finding in findings:
        if finding.group != group:
            group = finding.group
            table.add_row(f"[bold]{group}[/]")
        table.add_row(f"  {finding.name}", _MARKS[finding.state], markup(finding.found))
        if finding.state != "yes":
            switched_off = f"affects: {finding.switches_off}; to get it: {finding.get}"
            table.add_row("", "", f"[dim]{markup(switched_off)}[/]")
    console = Console(highlight=False)
    console.print(markup(summary(findings)), style="bold")
    console.print()
    console.print(table)
