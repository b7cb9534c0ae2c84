# SPDX-License-Identifier: Apache-2.0
from collections.abc import Sequence
from typing import Annotated

import typer

from tare.terminal import json_text, printable


def register(app: typer.Typer) -> None:
    """Adds `tare ps`."""
    app.command()(ps)


def ps(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List programs under hook, link or log, and containers."""
    from dataclasses import asdict
    from datetime import datetime

    from tare.running import made_things, programs

    found, made = programs(), made_things()
    if as_json:
        things = [
            {"type": one.type, "name": one.name, "owner": one.owner, "in_use": one.in_use}
            for one in made
        ]
        print(json_text({"programs": [asdict(one) for one in found], "environments": things}))
        return
    rows = [("pid", "kind", "since", "collector", "program")]
    for one in found:
        since = f"{datetime.fromtimestamp(one.since):%Y-%m-%d %H:%M:%S}"
        collector = {None: "none", 0: "other namespace"}.get(one.collector, str(one.collector))
        rows.append((str(one.pid), one.kind, since, collector, printable(one.command)))
    _print_table(rows)
    if made:
        print()
        states = ("left behind; remove it with tare clean", "in use")
        lines = [(str(one.owner), one.type, one.name, states[one.in_use]) for one in made]
        _print_table([("owner", "kind", "name", "state"), *lines])


def _print_table(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())
