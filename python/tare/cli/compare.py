# SPDX-License-Identifier: Apache-2.0
"""`tare compare`: judges runs that were measured before, by Tare or by anything else."""

from __future__ import annotations

import json
import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tare.errors import InputError

if TYPE_CHECKING:
    from tare.verdict import Judgement

USAGE = "name files as --baseline NAME=FILE[,FILE...] NAME=FILE[,FILE...], or one result folder"


class Method(StrEnum):
    """Tare's verdict alone, or the published pooled t-test beside it."""

    TARE = "tare"
    PUBLISHED_T = "published-t"


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
            metavar="NAME=FILE[,FILE...]... | RESULT_FOLDER",
            help="Conditions with their files, one file a run; or a folder that tare run wrote.",
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
            help="Leave out the first N requests of every run; auto finds N (MSER-5).",
        ),
    ] = "0",
    method: Annotated[
        Method, typer.Option(help="published-t adds the pooled t-test of the hook paper.")
    ] = Method.TARE,
    paired: Annotated[
        bool,
        typer.Option("--paired", help="Files in the same position belong to one block."),
    ] = False,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="PERCENT",
            help="Smallest difference that matters. Default: 3%, or that of the result folder.",
        ),
    ] = None,
    primary: Annotated[
        Metric | None,
        typer.Option(
            help="The metric that carries the verdict. Default: p50, or that of the folder.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say whether conditions differ, by how much, and how sure that is.

    Reads CSV with start_time,response_time (s, ms; also .gz), Parquet, Arrow, and what JMeter
    (JTL), k6 (CSV) and wrk2 (--latency) write. Runs, never single requests, are compared.
    """
    fraction = None if budget is None else parse_percent(budget)
    if baseline is None:
        if len(what) != 1 or "=" in what[0]:
            raise InputError(f"no --baseline: {USAGE}")
        if warmup != "0" or paired or method is not Method.TARE:
            raise InputError(f"{what[0]}: --warmup, --paired and --method are for files of runs")
        judgement = _of_folder(Path(what[0]), fraction, primary)
    else:
        judgement = _of_files(
            baseline,
            what,
            warmup=warmup,
            method=method,
            paired=paired,
            budget=fraction,
            primary=primary,
        )
    if as_json:
        typer.echo(json.dumps(judgement.to_json(method is Method.PUBLISHED_T), indent=2))
        return
    from tare.cli.table import print_judgement

    print_judgement(judgement)


def parse_percent(text: str) -> float:
    """`3%` or `3 %` as the fraction 0.03. Raises InputError for anything else."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", text)
    if not found or not 0 < float(found.group(1)) < 100:
        raise InputError(f"--budget: found '{text}', expected a percentage above 0 such as 3%")
    return float(found.group(1)) / 100


def _of_folder(folder: Path, budget: float | None, primary: Metric | None) -> Judgement:
    from dataclasses import replace

    from tare.samples import read_result
    from tare.verdict import judge

    experiment = read_result(folder)
    if budget is not None:
        experiment = replace(experiment, budget=budget)
    if primary is not None:
        experiment = replace(experiment, primary=primary.value)
    return judge(experiment)


def _of_files(
    baseline: str,
    what: list[str],
    *,
    warmup: str,
    method: Method,
    paired: bool,
    budget: float | None,
    primary: Metric | None,
) -> Judgement:
    from dataclasses import replace

    from tare.samples.files import experiment_of, open_files
    from tare.verdict import judge, published_test

    name, paths = _condition(baseline)
    conditions = {name: paths}
    for text in what:
        other, its_paths = _condition(text)
        if other in conditions:
            raise InputError(f"condition '{other}' is named twice; give it all its files at once")
        if paired and len(its_paths) != len(paths):
            raise InputError(
                f"--paired: '{other}' has {len(its_paths)} files and '{name}' {len(paths)};"
                " one of each belongs to a block"
            )
        conditions[other] = its_paths
    if method is Method.PUBLISHED_T and len(conditions) != 2:
        raise InputError("--method published-t compares two conditions; name one beside --baseline")
    files = open_files(conditions, _warm_up(warmup))
    metric = (primary or Metric.P50).value
    experiment = experiment_of(files, name, paired, 0.03 if budget is None else budget, metric)
    judgement = judge(experiment)
    if method is Method.TARE:
        return judgement
    other = next(one for one in conditions if one != name)
    published, warnings = published_test(files.durations(name), files.durations(other), other)
    return replace(judgement, published=published, warnings=(*judgement.warnings, *warnings))


def _condition(text: str) -> tuple[str, list[Path]]:
    name, separator, files = text.partition("=")
    paths = [Path(one) for one in files.split(",") if one]
    if not separator or not name or not paths:
        raise InputError(f"'{text}' is not NAME=FILE[,FILE...]: {USAGE}")
    files_there = [path.resolve() for path in paths]
    if twice := [path for path in paths if files_there.count(path.resolve()) > 1]:
        raise InputError(
            f"{twice[0]}: named twice for '{name}'; a file is one run, and counts once"
        )
    return name, paths


def _warm_up(text: str) -> int | Literal["auto"]:
    if text == "auto":
        return "auto"
    if not text.isascii() or not text.isdigit():
        raise InputError(f"--warmup: found '{text}', expected a number of requests or auto")
    return int(text)
