# SPDX-License-Identifier: Apache-2.0
"""Puts the report together: reads the folder once, fills the templates, writes two files."""

from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from tare.files import opened, replace
from tare.report import (
    distances,
    distributions,
    evidence,
    glossary,
    markdown,
    pictures,
    power,
    run_table,
    shift,
    tables,
    warm_up,
    words,
)
from tare.report.cards import first_screen
from tare.report.result import Result, read
from tare.untrusted import PLAN_BYTES, read_bytes

if TYPE_CHECKING:
    import jinja2

    from tare.samples.looks import Looks
    from tare.samples.model import Experiment

HTML = "report.html"
MARKDOWN = "report.md"

_FIRST = (
    ("warnings", "Warnings"),
    ("notes", "Notes"),
    ("effects", "Differences"),
    ("percentiles", "Percentiles"),
    ("boxes", "Box plots"),
    ("runs-by-block", "Run by run"),
    ("lag", "Request by request"),
    ("own-time", "The layer's own time"),
    ("micro-macro", "Inside and outside"),
    ("processor", "CPU time"),
    ("metrics", "All metrics"),
)
_LAST = (
    ("left-out", "Not shown"),
    ("runs", "Runs"),
    ("machine", "Machine"),
    ("plan", "Plan"),
    ("glossary", "Words"),
)


def write(folder: Path, known: "tuple[Experiment, Looks] | None" = None) -> Path:
    """Writes report.html and report.md into a result folder, and returns the path of the first.

    `known` is what `read_with_looks` returned for it, if it has been read already. Judges the
    result first where verdicts.json is missing. Raises InputError where the folder is no result.
    """
    from tare.samples.result import readable

    folder = Path(folder)
    with ExitStack() as stack:
        with readable(folder):
            # Meanwhile its owner can put another folder, or a link, in its place.
            same = stack.enter_context(opened(folder)) if folder.is_dir() else None
            content = _content(read(folder, known))
        for name, escape in ((HTML, True), (MARKDOWN, False)):
            text = templates(escape).get_template(f"{name}.j2").render(content)
            replace(folder / name, text, within=same)
    return folder / HTML


def templates(escape: bool) -> "jinja2.Environment":
    """The templates of all pages, with the filters that they use."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("tare.report"),
        autoescape=escape,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        percent=words.percent,
        plural=words.plural,
        safe_text=words.safe,
        typeset=words.typeset,
        cell=markdown.cell,
    )
    return environment


def _content(result: Result) -> dict[str, Any]:
    """Everything that the templates name."""
    from tare.samples.places import settled
    from tare.samples.result import open_result, read_hive

    opened = open_result(result.folder)
    samples = distributions.kept(opened, result.places, result.span)
    costs = read_hive(opened.backend, result.folder, "costs")
    if costs is not None:
        costs = distributions.costs_of(costs, result.places)
    run_rows, more_runs = run_table.rows(result)
    further = [
        evidence.spans(result),
        evidence.numbers(result),
        shift.section(result),
        distances.section(result),
        warm_up.section(result),
        power.section(result),
        evidence.control(result),
        evidence.limits(result),
    ]
    drawn = {
        "effects": pictures.forest(result),
        "runs": pictures.run_plots(result),
    }
    if samples is not None:
        counted = settled(samples, result.looks.first)
        drawn["percentiles"] = pictures.percentile_plots(result, distributions.curves(counted))
        drawn["boxes"] = pictures.box_plots(result, counted)
        drawn["lag"] = pictures.lag_plots(result, samples)
    if costs is not None:
        drawn["own_time"] = pictures.own_time_plots(result, costs)
    title = words.safe(result.manifest.name or result.folder.name, 60)
    summary = _summary(result)
    budget = f"within the budget of ±{words.percent(result.budget, signed=False)}"
    if any(result.threshold(one) > result.budget for one in result.primary_comparisons):
        budget += ", or what these runs can detect"
    content = {
        "result": result,
        "title": title,
        "summary": summary,
        "budget": budget,
        "first": first_screen(result, f"{title} {summary} {budget}"),
        "warnings": result.warnings,
        "notes": result.notes,
        "pictures": {name: list(drawn.get(name, ())) for name in _FIGURES},
        "metrics": list(tables.metrics(result)),
        "processor": list(tables.processor(result)),
        "further": [one for one in further if one.there],
        "left_out": [one for one in further if not one.there],
        "runs": run_rows,
        "more_runs": more_runs,
        "costs": [] if costs is None else list(tables.costs(result, costs)),
        "whole_layers": [] if costs is None else list(tables.whole_layers(result, costs)),
        "micro_macro": [] if costs is None else list(tables.micro_macro(result, costs)),
        "machine": list(tables.facts(result.manifest.machine)),
        "conduct": list(tables.facts(_conduct(result))),
        "plan": _plan(result.folder),
        "glossary": glossary.WORDS,
        "verdict_words": glossary.VERDICTS,
        "columns": tables,
        "run_columns": run_table.COLUMNS,
    }
    return content | {"contents": _contents(content)}


_FIGURES = ("effects", "percentiles", "boxes", "runs", "lag", "own_time")

_BY_PICTURE = ("effects", "percentiles", "boxes", "lag")
"""Sections that are there where their figures are."""


def _contents(content: dict[str, Any]) -> list[tuple[str, str]]:
    """The sections that the report has."""
    there = {
        "warnings": content["warnings"],
        "notes": content["notes"],
        "own-time": content["costs"],
        "runs-by-block": content["pictures"]["runs"],
        "micro-macro": content["micro_macro"],
        "processor": content["processor"],
        "metrics": content["metrics"],
        "plan": content["plan"],
        "left-out": content["left_out"],
    } | {name: content["pictures"][name] for name in _BY_PICTURE}
    every = (*_FIRST, *((one.anchor, one.name) for one in content["further"]), *_LAST)
    return [(anchor, name) for anchor, name in every if there.get(anchor, True)]


def _summary(result: Result) -> str:
    """What was compared with what, how often, where and when."""
    level = [
        run.summaries[result.primary]
        for run in result.measured
        if run.valid and run.condition == result.baseline and result.primary in run.summaries
    ]
    against = f"Against {words.safe(result.baseline, 40)}"
    if level and len(result.environments) == 1:
        against += f", {words.duration(median(level))} at {result.primary}"
    how = [words.plural(result.manifest.blocks, "block")]
    how.append(words.safe(result.manifest.design, 24))
    if len(result.environments) == 1:
        how.append(f"on {words.safe(result.environments[0], 24)}")
    how.append(_day(result.manifest.started))
    return f"{against}. {', '.join(part for part in how if part)}."


def _day(started: str) -> str:
    try:
        day = datetime.fromisoformat(started)
    except ValueError:
        return ""
    return f"{day.day}{words.NO_BREAK}{day:%B}{words.NO_BREAK}{day.year}"


def _conduct(result: Result) -> dict[str, Any]:
    """How the experiment was done, as far as the manifest says."""
    names = ("experiment", "kind", "design", "blocks", "seed", "started", "finished")
    manifest = result.manifest
    found = {name: getattr(manifest, name) for name in names if name in manifest.model_fields_set}
    layers = {
        condition.name: ", ".join(str(layer.get("type")) for layer in condition.layers) or "none"
        for condition in manifest.conditions
    }
    tables = {"placement": manifest.placement, "load": manifest.load, "layers of": layers}
    return found | tables


def _plan(folder: Path) -> str:
    try:
        text = read_bytes(folder / "plan.toml", PLAN_BYTES).decode(errors="replace")
    except (OSError, ValueError):
        return ""
    return "\n".join(words.safe(line) for line in text.splitlines())
