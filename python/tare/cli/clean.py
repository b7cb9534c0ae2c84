# SPDX-License-Identifier: Apache-2.0
from typing import Annotated

import typer

from tare.cli.shared.streams import tell
from tare.terminal import json_text, printable


def register(app: typer.Typer) -> None:
    """Adds `tare clean`."""
    app.command()(clean)


def clean(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Remove what killed processes of Tare left behind."""
    from tare.running import remove_leftovers, runtime_directory_fault

    if fault := runtime_directory_fault():
        tell(f"warning: ignored what is in {fault}")
    removed = [str(path) for path in remove_leftovers()]
    if as_json:
        print(json_text({"removed": removed}))
        return
    for path in removed:
        print(f"removed {printable(path)}")
    if not removed:
        print("nothing to remove")
