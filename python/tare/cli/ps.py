# SPDX-License-Identifier: Apache-2.0
from typing import Annotated

import typer

from tare.terminal import json_text, printable


def register(app: typer.Typer) -> None:
    """Adds `tare ps`."""
    app.command()(ps)


def ps(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List programs under the hook, the link or the log."""
    from dataclasses import asdict
    from datetime import datetime

    from tare.running import programs

    found = programs()
    if as_json:
        print(json_text({"programs": [asdict(one) for one in found]}))
        return
    rows = [("pid", "kind", "since", "collector", "program")]
    for one in found:
        since = f"{datetime.fromtimestamp(one.since):%Y-%m-%d %H:%M:%S}"
        collector = {None: "none", 0: "other namespace"}.get(one.collector, str(one.collector))
        rows.append((str(one.pid), one.kind, since, collector, printable(one.command)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())
