# SPDX-License-Identifier: Apache-2.0
"""`tare spans`: receives traces, and shows what files of them contain."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tare.cli import native
from tare.cli.shared.options import AsJson
from tare.cli.shared.streams import tell
from tare.terminal import aligned, json_text, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tare.samples.read.span_file import SpanFile

COLUMNS = ("span", "spans", "per second", "per trace", "errors", "p50", "p95", "p99")


def register(app: typer.Typer) -> None:
    """Adds `tare spans`."""
    spans = typer.Typer(
        help="Receive traces, and show what files of them contain.", rich_markup_mode=None
    )
    spans.callback(invoke_without_command=True)(_help)
    native.register(spans, "spans")
    spans.command("show")(show)
    app.add_typer(spans, name="spans")


def _help(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def show(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="OpenTelemetry (OTLP JSON lines), Jaeger (JSON, Elasticsearch documents) or Zipkin"
            " (JSON), also gzipped.",
            show_default=False,
        ),
    ],
    *,
    group_by: Annotated[
        str | None,
        typer.Option(
            metavar="ATTRIBUTE",
            help="Show spans with different values of this attribute separately.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print the spans of traces: how many, how often, how long.

    Spans are named by service, operation and kind. The span with the largest sum of times is first.
    """
    from dataclasses import asdict

    from tare.samples.read.span_file import read_spans

    found = [read_spans(path, group_by) for path in files]
    for line in (line for one in found for line in one.warnings):
        tell(f"warning: {line}")
    if as_json:
        typer.echo(json_text({"files": [asdict(one) for one in found]}))
        return
    for one in found:
        for line in _lines(one):
            typer.echo(line)


def _lines(file: SpanFile) -> Iterator[str]:
    from shutil import get_terminal_size

    from tare.verdict.words import count, duration

    yield printable(
        f"{file.path}: {count(file.spans, 'span')} in {count(file.traces, 'trace')},"
        f" {duration(1e9 * file.seconds)}"
    )
    rows = [
        COLUMNS,
        *(
            (
                one.span,
                f"{one.spans:,}",
                "-" if one.per_second is None else f"{one.per_second:,.3g}",
                f"{one.per_trace:,.3g}",
                f"{one.errors:,}",
                *(duration(time) for time in (one.p50_ns, one.p95_ns, one.p99_ns)),
            )
            for one in file.kinds
        ),
    ]
    for cells in aligned(rows, get_terminal_size().columns - 2 * len(COLUMNS)):
        yield f"  {'  '.join(cells)}"
