# SPDX-License-Identifier: Apache-2.0
"""`tare report`: the report of a result folder, written anew."""

from pathlib import Path
from typing import Annotated

import typer

from tare.terminal import json_text, printable


def register(app: typer.Typer) -> None:
    """Adds `tare report`."""
    app.command("report")(report)


def report(
    folder: Annotated[
        Path, typer.Argument(metavar="RESULT_FOLDER", help="A result folder of 'tare run'.")
    ],
    show: Annotated[bool, typer.Option("--open", help="Open the report in a browser.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the paths and the verdicts as JSON.")
    ] = False,
) -> None:
    """Write report.html and report.md into a result folder."""
    from tare.report import MARKDOWN, VERDICTS, write
    from tare.report.verdicts import stored_verdicts

    page = write(folder)
    if as_json:
        paths = {"html": page, "markdown": folder / MARKDOWN, "json": folder / VERDICTS}
        named = {name: str(path) for name, path in paths.items()}
        typer.echo(json_text({**named, **stored_verdicts(folder)}))
    else:
        typer.echo(printable(str(page)))
    if show:
        typer.launch(page.resolve().as_uri())
