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

from tare.cli.shared.options import given_options, with_groups
from tare.cli.shared.outcome import Outcome, OutcomeOptions
from tare.cli.shared.share import share
from tare.errors import InputError
from tare.extras import extra

if TYPE_CHECKING:
    from tare.samples import ImportOptions
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
    app.command("compare")(with_groups(compare))


def compare(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="OLD NEW | RESULT_FOLDER | NAME=FILE[,FILE...]...",
            help="OLD NEW: two result folders of tare run, two files, or two folders of files."
            " RESULT_FOLDER: the conditions of one result. NAME=FILE: with --baseline, the files"
            " of a condition. One file is one run; a folder means all files in it.",
            show_default=False,
        ),
    ],
    *,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="NAME=FILE[,FILE...]", help="Condition that the others are compared with."
        ),
    ] = None,
    warmup: Annotated[
        str,
        typer.Option(
            metavar="N|auto",
            help="Leave out the first N requests of every run. auto: up to where every run is"
            " steady.",
        ),
    ] = "auto",
    method: Annotated[
        Method,
        typer.Option(
            help="Also print a published analysis: published-t is the pooled t-test of Kahlhofer et"
            " al., published-bestfit the comparison of best-fit runs of Vinken."
        ),
    ] = Method.TARE,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="start=COLUMN,duration=COLUMN[,...]",
            help="Names of columns in CSV, Parquet and Arrow files, for start, end, intended,"
            " duration, ok, status, error, bytes, span, condition.",
            show_default=False,
        ),
    ] = None,
    units: Annotated[
        list[str] | None,
        typer.Option(
            "--unit",
            metavar="[NAME=]ns|us|ms|s",
            help="Unit of times in files that do not state it, for all conditions or for one"
            " (new=us). Repeatable.",
            show_default=False,
        ),
    ] = None,
    group_by: Annotated[
        str | None,
        typer.Option(
            metavar="ATTRIBUTE",
            help="Take spans with different values of this attribute for different spans, in"
            " OpenTelemetry, Jaeger and Zipkin files.",
            show_default=False,
        ),
    ] = None,
    paired: Annotated[
        bool,
        typer.Option("--paired", help="Files at the same position belong to the same block."),
    ] = False,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="Smallest relative difference that matters, 3% or 0.03. Default: 3%, or the budget"
            " of the (old) result folder.",
        ),
    ] = None,
    max_errors: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE",
            help="A file with a larger share of failed requests is an invalid run, 1% or 0.01."
            " Default: 1%.",
            show_default=False,
        ),
    ] = None,
    primary: Annotated[
        Metric | None,
        typer.Option(
            help="The metric that decides the verdict. Default: p50, or the metric of the result"
            " folder.",
            show_default=False,
        ),
    ] = None,
    conditions: Annotated[
        list[str] | None,
        typer.Option(
            "--condition",
            metavar="NAME",
            help="Compare only this condition of two result folders. Repeatable. Default: all that"
            " both have.",
            show_default=False,
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|URL",
            help="Engine that reads the samples of a result folder: duckdb, spark[:MASTER],"
            " clickhouse://...#TABLE or trino://...#TABLE. Default: duckdb.",
            show_default=False,
        ),
    ] = None,
    wanted: OutcomeOptions,
) -> None:
    """Compare measured runs: whether they differ, and by how much.

    Runs are compared, never single requests. Reads CSV (start_time,response_time in s, ms, or
    any --columns), Parquet, Arrow, and the files of k6, JMeter, Locust, oha, hey, fortio, Gatling,
    wrk2, HdrHistogram (logs), OpenTelemetry (OTLP JSON lines), Jaeger (JSON,
    Elasticsearch documents) and Zipkin (JSON), also gzipped.
    """
    outcome = Outcome.wanted(wanted)
    if method is Method.PUBLISHED_BESTFIT:
        extra("scipy", "scipy.stats", f"--method {method}")
    fraction = None if budget is None else share("--budget", budget, above_zero=True)
    metric = None if primary is None else primary.value
    folders = [] if baseline is not None else _result_folders(what)
    if folders:
        for_files = given_options(
            {
                "--warmup": warmup != "auto",
                "--paired": paired,
                "--columns": columns is not None,
                "--unit": bool(units),
                "--group-by": group_by is not None,
                "--max-errors": max_errors is not None,
            }
        )
        if for_files:
            raise InputError(f"{for_files}: for files only, and {folders[0]} is a result folder")
        if method is not Method.TARE and len(folders) == 2:
            raise InputError(
                "--method: does not apply to two result folders; give files or one result folder"
            )
        judgement = _of_results(folders, conditions or (), fraction, metric, engine)
        if method is not Method.TARE:
            from tare.samples.read.latencies import durations_by_run

            judgement = _published(judgement, method, durations_by_run(folders[0]))
    else:
        if engine is not None:
            raise InputError("--engine: applies to a result folder, not to files")
        if conditions:
            raise InputError("--condition: applies to two result folders, not to files")
        named = _named(baseline, what)
        judgement = _of_files(
            named,
            _asked(columns, units or (), named, group_by),
            warmup=warmup,
            method=method,
            paired=paired,
            budget=0.03 if fraction is None else fraction,
            primary=metric or Metric.P50.value,
            max_errors="1%" if max_errors is None else max_errors,
        )
    outcome.tell(judgement, published=method is not Method.TARE)
    if not judgement.comparisons:
        raise InputError(
            "nothing can be compared: the conditions have no span in common; names of spans must be"
            " equal, also in upper and lower case"
        )
    outcome.gate(judgement)


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
            raise InputError(f"{other}: no such folder; give two result folders")
        raise InputError(
            f"{other}: is not a result folder, but {results[0]} is; give two result folders"
        )
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
            raise InputError("--engine: applies to one result folder, not to two")
        old, new = folders
        return judge_folders(old, new, conditions, budget, primary)
    if conditions:
        raise InputError(
            "--condition: needs two result folders; with one, all conditions are compared"
        )
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
        paths = [Path(path) for path in files.split(",") if path]
        if not separator or not name or not paths:
            raise InputError(f"'{text}' is not NAME=FILE[,FILE...]: {USAGE}")
        if name in found:
            raise InputError(
                f"condition '{name}' is named twice; list all its files in one argument"
            )
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
            f"{twice[0]}: is given twice for '{name}'; give each file once, a file is one run"
        )
    return files


def _inside(folder: Path) -> list[Path]:
    if (folder / MANIFEST).exists():
        raise InputError(
            f"{folder}: is a result folder of tare run; compare two with 'tare compare OLD NEW'"
        )
    files = [file for file in folder.iterdir() if file.is_file() and file.name[0] != "."]
    if not files:
        raise InputError(f"{folder}: contains no file; give a folder with one file per run")
    return sorted(files, key=_by_number)


@contextmanager
def _readable() -> Iterator[None]:
    """A folder that may not be looked into is bad input."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror}; give a readable path") from error


def _by_number(path: Path) -> list[tuple[str, int]]:
    """run2 before run10."""
    return [(text, int(digits or 0)) for text, digits in re.findall(r"(\D*)(\d*)", path.name)]


def _of_files(
    conditions: dict[str, list[Path]],
    options: ImportOptions,
    *,
    warmup: str,
    method: Method,
    paired: bool,
    budget: float,
    primary: str,
    max_errors: str,
) -> Judgement:
    from tare.samples.model import REQUEST
    from tare.samples.read.file_runs import experiment_of
    from tare.samples.read.foreign_files import open_files
    from tare.verdict import judge, without_failing

    limit = share("--max-errors", max_errors)

    (name, paths), *others = conditions.items()
    for other, its_paths in others:
        if paired and len(its_paths) != len(paths):
            raise InputError(
                f"--paired: '{other}' has {len(its_paths)} files and '{name}' {len(paths)};"
                " give the same number of files, one of each per block"
            )
    if method is Method.PUBLISHED_T:
        _two([name for name, _ in others])
    files = open_files(conditions, _warm_up(warmup), options)
    experiment = experiment_of(files, name, paired, budget, primary)
    judgement = judge(without_failing(experiment, limit))
    if method is Method.TARE:
        return judgement
    if method is Method.PUBLISHED_T:
        # Warm-up and order of a file are one for all of its spans.
        runs = {condition: [{REQUEST: files.durations(condition)}] for condition in conditions}
    else:
        runs = {condition: files.durations_by_run(condition) for condition in conditions}
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
        baseline, condition = (
            np.concatenate([run.get(REQUEST, np.empty(0)) for run in (*runs[of], {})])
            for of in (name, others[0])
        )
        published, warnings = published_test(baseline, condition, others[0])
    else:
        published, warnings = published_best_fit(runs, name)
    return replace(judgement.warned(*warnings), published=published)


def _two(others: Sequence[str]) -> None:
    if len(others) != 1:
        raise InputError("--method published-t: needs exactly one condition besides --baseline")


def _asked(
    columns: str | None, units: Sequence[str], conditions: Collection[str], group_by: str | None
) -> ImportOptions:
    from tare.samples import ImportOptions, parse_columns, parse_units

    unit, own = parse_units(units, conditions)
    return ImportOptions({} if columns is None else parse_columns(columns), unit, own, group_by)


def _warm_up(text: str) -> int | Literal["auto"]:
    if text == "auto":
        return "auto"
    if not text.isascii() or not text.isdigit():
        raise InputError(f"--warmup: found '{text}', expected a number of requests or auto")
    return int(text)
