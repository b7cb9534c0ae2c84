# SPDX-License-Identifier: Apache-2.0
"""`tare spans`: receives and fetches traces, and shows what files of them contain."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tare.cli import native
from tare.cli.shared.options import AsJson, option
from tare.cli.shared.streams import tell
from tare.errors import InputError
from tare.terminal import aligned, json_text, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tare.samples.fetch import Fetched, Window
    from tare.samples.read.span_file import SpanFile

INDENT = "  "
ALL_ATTRIBUTES = "--attribute: is for Kafka; traces of Jaeger have all attributes"
COLUMNS = ("span", "spans", "per second", "per trace", "errors", "p50", "p95", "p99")


def register(app: typer.Typer) -> None:
    """Adds `tare spans`."""
    spans = typer.Typer(
        help="Receive or fetch traces, and show what files of them contain.", rich_markup_mode=None
    )
    spans.callback(invoke_without_command=True)(_help)
    native.register(spans, "spans")
    spans.command("fetch")(fetch)
    spans.command("show")(show)
    app.add_typer(spans, name="spans")


def _help(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def fetch(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="http://HOST:16686 of Jaeger's query service (or https),"
            " kafka://HOST:9092/TOPIC with OTLP messages, or elasticsearch://HOST:9200/INDEX of"
            " Jaeger ('jaeger-span-*').",
            show_default=False,
        ),
    ],
    *,
    out: Annotated[
        Path | None, option("--out", "FILE", "File that gets the traces; it is replaced.")
    ] = None,
    into: Annotated[
        Path | None,
        option("--into", "FOLDER", "Result folder that gets the spans as Parquet, as a new run."),
    ] = None,
    condition: Annotated[
        str | None,
        option("--condition", "NAME", "Of the run, with --into; the first is the baseline."),
    ] = None,
    service: Annotated[
        str | None, option("--service", "NAME", "Traces of this service (Jaeger needs it).")
    ] = None,
    since: Annotated[
        str, option("--from", "TIME", "ISO 8601 (2026-05-31T18:00), or a duration before now. [1h]")
    ] = "1h",
    until: Annotated[str, option("--to", "TIME", "In the same form. [0s: now]")] = "0s",
    attributes: Annotated[
        list[str] | None,
        option("--attribute", "KEY", "Of Kafka: keep this attribute, for --group-by. Repeatable."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Save traces of Jaeger, of a Kafka topic or of an Elasticsearch index, as a file.

    `tare spans show` and `tare compare` read it. Traces of Jaeger are saved as Jaeger's JSON,
    messages of Kafka as Arrow, documents of Elasticsearch one per line.

    With --into, each call adds one run to a result folder, which any engine of `tare compare`
    reads.

    Example, the last ten minutes: tare spans fetch http://localhost:16686 --service frontend --from
    10m --out now.json
    """
    from dataclasses import asdict
    from tempfile import TemporaryDirectory
    from time import time_ns

    from tare.lab.result.fetched_runs import add_run
    from tare.samples.fetch import Window
    from tare.verdict.number_text import count

    now = time_ns()
    window = Window(_moment("--from", since, now), _moment("--to", until, now))
    if window.start_ns >= window.end_ns:
        raise InputError(f"--from {since}: expected a time before --to {until}")
    if (out is None) == (into is None):
        raise InputError("--out: expected a file, or a result folder with --into instead")
    if out is not None:
        if condition is not None:
            raise InputError("--condition: is for --into; a file has no condition")
        found = _fetched(source, service, window, out, attributes or ())
    else:
        assert into is not None
        name = _name_of_condition(condition)
        with TemporaryDirectory(prefix="tare-fetch-") as folder:
            kind = "arrow" if source.startswith("kafka:") else "json"
            file = Path(folder) / f"spans.{kind}"
            found = _fetched(source, service, window, file, attributes or ())
            run = add_run(into, name, file)
    for line in found.warnings:
        tell(f"warning: {line}")
    if as_json:
        typer.echo(json_text(asdict(found)))
        return
    of = "" if found.traces is None else f" of {count(found.traces, 'trace')}"
    where = str(out) if into is None else f"{into}, run {run} ({condition})"
    typer.echo(printable(f"{count(found.spans, 'span')}{of} in {where}"))


def _name_of_condition(name: str | None) -> str:
    from pydantic import TypeAdapter, ValidationError

    from tare.plan.schema.values import Name

    try:
        return TypeAdapter(Name).validate_python(name)
    except ValidationError as error:
        raise InputError(
            f"--condition {name or ''}: expected the name of a condition with --into: up to 64"
            " letters, digits, dots, dashes and underscores"
        ) from error


def _fetched(
    source: str, service: str | None, window: Window, out: Path, attributes: Sequence[str]
) -> Fetched:
    from urllib.parse import unquote, urlsplit

    try:
        parts = urlsplit(source)
        addresses = [urlsplit(f"//{address}") for address in parts.netloc.split(",")]
        is_valid = all(address.hostname and address.port != 0 for address in addresses)
    except ValueError:
        is_valid = False
    kind, topic = (parts.scheme, parts.path.strip("/")) if is_valid else ("", "")
    if kind in {"http", "https"}:
        from tare.samples.fetch import jaeger_api

        if service is None:
            raise InputError("--service: is missing; Jaeger returns traces of one service")
        if attributes:
            raise InputError(ALL_ATTRIBUTES)
        return jaeger_api.fetch(source.rstrip("/"), service, window, out)
    if kind == "kafka" and topic:
        from tare.samples.fetch import kafka_topic

        if service is not None:
            raise InputError("--service: is for Jaeger; a topic has the spans of all services")
        return kafka_topic.fetch(parts.netloc, topic, window, out, attributes)
    if kind == "elasticsearch" and topic:
        from tare.samples.fetch import elasticsearch

        if service is not None:
            raise InputError("--service: is for Jaeger; an index has the spans of all services")
        if attributes:
            raise InputError(ALL_ATTRIBUTES)
        return elasticsearch.fetch(f"http://{parts.netloc}", unquote(topic), window, out)
    raise InputError(
        f"{source}: expected http://HOST:16686 of Jaeger's query service, kafka://HOST:9092/TOPIC"
        " or elasticsearch://HOST:9200/INDEX"
    )


def _moment(flag: str, text: str, now_ns: int) -> int:
    """Nanoseconds since the Unix epoch of a time, or of a duration before now."""
    from datetime import datetime

    from pydantic_core import PydanticCustomError

    from tare.plan.schema.values import duration_ns

    try:
        return now_ns - duration_ns(text)
    except PydanticCustomError:
        pass
    try:
        return round(datetime.fromisoformat(text).timestamp() * 1e6) * 1_000
    except (ValueError, OverflowError, OSError) as error:
        raise InputError(
            f"{flag} {text}: expected a time such as 2026-05-31T18:00, or a duration such as 10m"
        ) from error


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
    for line in (line for file in found for line in file.warnings):
        tell(f"warning: {line}")
    if as_json:
        typer.echo(json_text({"files": [asdict(file) for file in found]}))
        return
    for file in found:
        for line in _lines(file):
            typer.echo(line)


def _lines(file: SpanFile) -> Iterator[str]:
    from shutil import get_terminal_size

    from tare.verdict.number_text import count, duration

    yield printable(
        f"{file.path}: {count(file.spans, 'span')} in {count(file.traces, 'trace')},"
        f" {duration(1e9 * file.seconds)}"
    )
    rows = [
        COLUMNS,
        *(
            (
                kind.span,
                f"{kind.spans:,}",
                "-" if kind.per_second is None else f"{kind.per_second:,.3g}",
                f"{kind.per_trace:,.3g}",
                f"{kind.errors:,}",
                *(duration(time) for time in (kind.p50_ns, kind.p95_ns, kind.p99_ns)),
            )
            for kind in file.kinds
        ),
    ]
    width = get_terminal_size().columns
    for line in _table(rows, width - len(INDENT)):
        yield f"{INDENT}{line}"


def _table(rows: Sequence[Sequence[str]], width: int) -> Iterator[str]:
    """Names before their numbers, or above if both have no room in a line: names are never cut."""
    from textwrap import wrap

    names = [printable(row[0]) for row in rows]
    cells = [*aligned([["", *row[1:]] for row in rows], width)]
    numbers = ["  ".join(row[1:]) for row in cells]
    longest = max(map(len, names))
    if longest + len(INDENT) + len(numbers[0]) <= width:
        for name, rest in zip(names, numbers, strict=True):
            yield f"{name:{longest}}{INDENT}{rest}"
        return
    for name, rest in zip(names, numbers, strict=True):
        yield from wrap(name, width, subsequent_indent=INDENT)
        yield f"{INDENT}{rest}"
