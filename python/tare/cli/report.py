# SPDX-License-Identifier: Apache-2.0
"""`tare report`: writes the report of a result folder again."""

from pathlib import Path
from typing import Annotated

import typer

from tare.cli.shared.streams import tell
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
    from tare.report.result.verdicts import read_verdicts, stored_verdicts
    from tare.report.sections import recommendations

    before = read_verdicts(folder)
    page = write(folder)
    after = read_verdicts(folder)
    if before is not None and after is not None and before.judged_by != after.judged_by:
        judge = before.judged_by or "an older version of tare"
        tell(f"{folder}: judged again, because the verdicts were from {judge}")
    if as_json:
        paths = {"html": page, "markdown": folder / MARKDOWN, "json": folder / VERDICTS}
        named = {name: str(path) for name, path in paths.items()}
        more = {"recommendations": [row.to_json() for row in recommendations.stored(folder)]}
        typer.echo(json_text({**named, **stored_verdicts(folder), **more}))
    else:
        for line in recommendations.short(recommendations.stored(folder)):
            tell(line)
        typer.echo(printable(str(page)))
    if show:
        typer.launch(page.resolve().as_uri())
