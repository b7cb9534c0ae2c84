# SPDX-License-Identifier: Apache-2.0
"""`tare compare`: judges runs that were measured before, by Tare or by anything else."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tare.cli.outcome import AsJson, AsMarkdown, FailOn, History, Labels, Outcome
from tare.errors import InputError

if TYPE_CHECKING:
    from tare.samples import Asked
    from tare.stats.arrays import Array
    from tare.verdict import Judgement, Published, PublishedBestFit

USAGE = (
    "give OLD NEW (two result folders, files, or folders of files), one result folder, or name"
    " files as --baseline NAME=FILE[,FILE...] NAME=FILE[,FILE...]"
)
MANIFEST = "manifest.json"


class Method(StrEnum):
    """Tare's verdict alone, or a published analysis beside it."""

    TARE = "tare"
    PUBLISHED_T = "published-t"
    PUBLISHED_BESTFIT = "published-bestfit"


class Metric(StrEnum):
    """What can carry a verdict."""

    P50 = "p50"
    P95 = "p95"
    P99 = "p99"
    MEAN = "mean"


def register(app: typer.Typer) -> None:
    """Adds `tare compare`."""
    app.command("compare")(compare)


def compare(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="OLD NEW | RESULT_FOLDER | NAME=FILE[,FILE...]...",
            help="Before and after a change: two folders of tare run, two files, or two folders of"
            " files; or one folder of tare run; or, with --baseline, conditions with their files."
            " One file is one run; a folder of files stands for all files in it.",
            show_default=False,
        ),
    ],
    *,
    baseline: Annotated[
        str | None,
        typer.Option(metavar="NAME=FILE[,FILE...]", help="The condition to compare with."),
    ] = None,
    warmup: Annotated[
        str,
        typer.Option(
            metavar="N|auto",
            help="Leave out the first N requests of every run; auto finds where all are steady.",
        ),
    ] = "auto",
    method: Annotated[
        Method,
        typer.Option(
            help="published-t adds the pooled t-test of the hook paper, published-bestfit the"
            " comparison of best-fit runs of Vinken's thesis."
        ),
    ] = Method.TARE,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="start=COLUMN,duration=COLUMN[,...]",
            help="Columns of CSV, Parquet and Arrow files: start, end, intended, duration, ok,"
            " status, error, bytes, span, condition.",
            show_default=False,
        ),
    ] = None,
    units: Annotated[
        list[str] | None,
        typer.Option(
            "--unit",
            metavar="[NAME=]ns|us|ms|s",
            help="The unit of times in files that do not state it, of all or of one condition"
            " (new=us). Repeatable.",
            show_default=False,
        ),
    ] = None,
    paired: Annotated[
        bool,
        typer.Option("--paired", help="Files in the same position belong to one block."),
    ] = False,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="PERCENT",
            help="Smallest difference that matters. Default: 3%, or that of the (old) folder.",
        ),
    ] = None,
    max_errors: Annotated[
        str | None,
        typer.Option(
            metavar="PERCENT",
            help="A file with a larger share of failed requests is an invalid run. Default: 1%.",
            show_default=False,
        ),
    ] = None,
    primary: Annotated[
        Metric | None,
        typer.Option(
            help="The metric that carries the verdict. Default: p50, or that of the folder.",
            show_default=False,
        ),
    ] = None,
    conditions: Annotated[
        list[str] | None,
        typer.Option(
            "--condition",
            metavar="NAME",
            help="Of two result folders, the condition to compare. Default: all that both have.",
            show_default=False,
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|URL",
            help="What counts the samples of a result folder: duckdb, spark[:MASTER],"
            " clickhouse://...#TABLE or trino://...#TABLE. Default: duckdb.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
    as_markdown: AsMarkdown = False,
    fail_on: FailOn = None,
    history: History = None,
    labels: Labels = None,
) -> None:
    """Say whether conditions differ, by how much, and how sure that is.

    Reads CSV (start_time,response_time in s, ms, or any --columns), Parquet, Arrow, and what k6,
    JMeter, Locust, oha, hey, fortio, Gatling, wrk2, HdrHistogram (logs), OpenTelemetry (OTLP JSON
    lines) and Jaeger (JSON) write; also gzipped. Runs, never single requests, are compared.
    """
    outcome = Outcome.wanted(
        as_json=as_json, as_markdown=as_markdown, fail_on=fail_on, history=history, labels=labels
    )
    fraction = None if budget is None else _percent("--budget", budget, "above 0 such as 3%")
    metric = None if primary is None else primary.value
    folders = [] if baseline is not None else _result_folders(what)
    if folders:
        if warmup != "auto" or paired:
            raise InputError(f"{folders[0]}: --warmup and --paired are for files of runs")
        if method is not Method.TARE and len(folders) == 2:
            raise InputError("--method: is for files of runs and for one result folder")
        if columns is not None or units:
            raise InputError(f"{folders[0]}: --columns and --unit are for files of runs")
        if max_errors is not None:
            raise InputError(f"{folders[0]}: --max-errors is for files; a plan has its max_errors")
        judgement = _of_results(folders, conditions or (), fraction, metric, engine)
        if method is not Method.TARE:
            from tare.samples.latencies import durations_by_run

            judgement = _published(judgement, method, durations_by_run(folders[0]))
    else:
        if engine is not None:
            raise InputError("--engine: is for a result folder; files are read in this process")
        if conditions:
            raise InputError("--condition: is for two result folders; files have no conditions")
        named = _named(baseline, what)
        judgement = _of_files(
            named,
            _asked(columns, units or (), named),
            warmup=warmup,
            method=method,
            paired=paired,
            budget=0.03 if fraction is None else fraction,
            primary=metric or Metric.P50.value,
            max_errors="1%" if max_errors is None else max_errors,
        )
    outcome.tell(judgement, published=method is not Method.TARE)
    outcome.gate(judgement)


def _percent(option: str, text: str, expected: str, least: float = 1e-9) -> float:
    """`3%` or `3 %` as the fraction 0.03. Raises InputError for anything else."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", text)
    if not found or not least <= float(found.group(1)) < 100:
        raise InputError(f"{option}: found '{text}', expected a percentage {expected}")
    return float(found.group(1)) / 100


def _result_folders(what: Sequence[str]) -> list[Path]:
    """One result of `tare run`, or two; none where what is named are files."""
    paths = [Path(text) for text in what]
    if len(paths) > 2 or any("=" in path.name and not path.exists() for path in paths):
        raise InputError(f"no --baseline: {USAGE}")
    with _readable():
        results = [path for path in paths if (path / MANIFEST).exists()]
    if len(paths) == 2 and len(results) == 1:
        (other,) = (path for path in paths if path not in results)
        if not other.exists():
            raise InputError(f"{other}: no such folder; name a result as {results[0]} is")
        raise InputError(f"{other}: is no result folder as {results[0]} is; compare two of a kind")
    # What is no result is said by who tries to read its manifest.
    return results if len(paths) == 2 else paths


def _of_results(
    folders: Sequence[Path],
    conditions: Sequence[str],
    budget: float | None,
    primary: str | None,
    engine: str | None,
) -> Judgement:
    from tare.samples import read_result
    from tare.verdict import judge, judge_folders

    if len(folders) == 2:
        if engine is not None:
            raise InputError("--engine: is for one result folder; two are read in this process")
        old, new = folders
        return judge_folders(old, new, conditions, budget, primary)
    if conditions:
        raise InputError("--condition: is for two result folders; of one all are judged")
    return judge(read_result(folders[0], engine).asked(budget, primary))


def _named(baseline: str | None, what: Sequence[str]) -> dict[str, list[Path]]:
    """The files of each condition, the baseline first; of OLD NEW the names are old and new."""
    if baseline is None:
        return {
            name: _files(name, [Path(text)])
            for name, text in zip(("old", "new"), what, strict=True)
        }
    found: dict[str, list[Path]] = {}
    for text in (baseline, *what):
        name, separator, files = text.partition("=")
        paths = [Path(one) for one in files.split(",") if one]
        if not separator or not name or not paths:
            raise InputError(f"'{text}' is not NAME=FILE[,FILE...]: {USAGE}")
        if name in found:
            raise InputError(f"condition '{name}' is named twice; give it all its files at once")
        found[name] = _files(name, paths)
    return found


def _files(name: str, paths: Sequence[Path]) -> list[Path]:
    """The files themselves, and of every folder those in it, in the order of their names."""
    files: list[Path] = []
    for path in paths:
        with _readable():
            files += _inside(path) if path.is_dir() else [path]
    there = Counter(path.resolve() for path in files)
    if twice := [path for path in files if there[path.resolve()] > 1]:
        raise InputError(
            f"{twice[0]}: named twice for '{name}'; a file is one run, and counts once"
        )
    return files


def _inside(folder: Path) -> list[Path]:
    if (folder / MANIFEST).exists():
        raise InputError(
            f"{folder}: is a result of tare run; compare two of them by 'tare compare OLD NEW'"
        )
    files = [one for one in folder.iterdir() if one.is_file() and one.name[0] != "."]
    if not files:
        raise InputError(f"{folder}: no file in it; name a folder with a file for each run")
    return sorted(files, key=_by_number)


@contextmanager
def _readable() -> Iterator[None]:
    """A folder that may not be looked into is bad input."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror}; name what you may read") from error


def _by_number(path: Path) -> list[tuple[str, int]]:
    """run2 before run10."""
    return [(text, int(digits or 0)) for text, digits in re.findall(r"(\D*)(\d*)", path.name)]


def _of_files(
    conditions: dict[str, list[Path]],
    asked: Asked,
    *,
    warmup: str,
    method: Method,
    paired: bool,
    budget: float,
    primary: str,
    max_errors: str,
) -> Judgement:
    from tare.samples.file_runs import experiment_of
    from tare.samples.files import open_files
    from tare.samples.model import REQUEST
    from tare.verdict import judge, without_failing

    limit = _percent("--max-errors", max_errors, "below 100 such as 1%", least=0)

    (name, paths), *others = conditions.items()
    for other, its_paths in others:
        if paired and len(its_paths) != len(paths):
            raise InputError(
                f"--paired: '{other}' has {len(its_paths)} files and '{name}' {len(paths)};"
                " one of each belongs to a block"
            )
    if method is Method.PUBLISHED_T:
        _two([name for name, _ in others])
    files = open_files(conditions, _warm_up(warmup), asked)
    experiment = experiment_of(files, name, paired, budget, primary)
    judgement = judge(without_failing(experiment, limit))
    if method is Method.TARE:
        return judgement
    if method is Method.PUBLISHED_T:
        # Warm-up and order of a file are one for all of its spans.
        runs = {one: [{REQUEST: files.durations(one)}] for one in conditions}
    else:
        runs = {one: files.durations_by_run(one) for one in conditions}
    return _published(judgement, method, runs)


def _published(
    judgement: Judgement, method: Method, runs: Mapping[str, Sequence[Mapping[str, Array]]]
) -> Judgement:
    """With a published analysis of the runs of each condition, the baseline's first."""
    from dataclasses import replace

    import numpy as np

    from tare.published import published_best_fit, published_test
    from tare.samples.model import REQUEST

    name, *others = runs
    published: Published | tuple[PublishedBestFit, ...] | None
    if method is Method.PUBLISHED_T:
        _two(others)
        one, two = (
            np.concatenate([run.get(REQUEST, np.empty(0)) for run in (*runs[of], {})])
            for of in (name, others[0])
        )
        published, warnings = published_test(one, two, others[0])
    else:
        published, warnings = published_best_fit(runs, name)
    return replace(judgement.warned(*warnings), published=published)


def _two(others: Sequence[str]) -> None:
    if len(others) != 1:
        raise InputError("--method published-t compares two conditions; name one beside --baseline")


def _asked(columns: str | None, units: Sequence[str], conditions: Collection[str]) -> Asked:
    from tare.samples import Asked, parse_columns, parse_units

    unit, own = parse_units(units, conditions)
    return Asked({} if columns is None else parse_columns(columns), unit, own)


def _warm_up(text: str) -> int | Literal["auto"]:
    if text == "auto":
        return "auto"
    if not text.isascii() or not text.isdigit():
        raise InputError(f"--warmup: found '{text}', expected a number of requests or auto")
    return int(text)
