# SPDX-License-Identifier: Apache-2.0
from collections.abc import Sequence
from typing import Annotated

import typer

from tare.cli.shared.streams import tell
from tare.terminal import json_text, printable


def register(app: typer.Typer) -> None:
    """Adds `tare ps`."""
    app.command()(ps)


def ps(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List programs under hook, link or log, containers, pipelines."""
    from dataclasses import asdict
    from datetime import datetime

    from tare.running import made_things, programs, runtime_directory_fault

    if fault := runtime_directory_fault():
        tell(f"warning: ignored what is in {fault}")
    found, made = programs(), made_things()
    if as_json:
        things = [
            {
                "type": resource.type,
                "name": resource.name,
                "owner": resource.owner,
                "in_use": resource.in_use,
            }
            for resource in made
        ]
        print(
            json_text({"programs": [asdict(program) for program in found], "environments": things})
        )
        return
    rows = [("pid", "kind", "since", "collector", "program")]
    for program in found:
        since = f"{datetime.fromtimestamp(program.since):%Y-%m-%d %H:%M:%S}"
        collector = {None: "none", 0: "other namespace"}.get(
            program.collector, str(program.collector)
        )
        rows.append((str(program.pid), program.kind, since, collector, printable(program.command)))
    _print_table(rows)
    if made:
        print()
        states = ("left behind; remove it with tare clean", "in use")
        lines = [
            (
                str(resource.owner),
                printable(resource.type),
                printable(resource.name),
                states[resource.in_use],
            )
            for resource in made
        ]
        _print_table([("owner", "kind", "name", "state"), *lines])


def _print_table(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())
