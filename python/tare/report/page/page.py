# SPDX-License-Identifier: Apache-2.0
"""Puts the report together: reads the folder once, fills the templates, writes two files."""

from contextlib import ExitStack
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tare.atomic_files import replace
from tare.report import pictures, tables, typesetting
from tare.report.page import markdown
from tare.report.page.cards import first_screen
from tare.report.result import distributions
from tare.report.result.result import Result, read
from tare.report.result.slowest import slowest as find_slowest
from tare.report.sections import (
    collected,
    critical_path,
    distances,
    environments,
    evidence,
    experiment_details,
    glossary,
    machine,
    machine_plots,
    overview,
    pooled_t,
    power,
    recommendations,
    round_trip,
    run_table,
    shift,
    slowest,
    span_percentiles,
    warm_up,
    waterfalls,
)
from tare.report.sections.sections import Section, in_groups
from tare.trust import trusted_folder
from tare.untrusted import PLAN_BYTES, read_bytes

if TYPE_CHECKING:
    import jinja2

    import tare.samples.read.result as samples
    from tare.samples.describe.warm_up_cuts import CutSummaries
    from tare.samples.model import Experiment
    from tare.samples.sql.table import Table

HTML = "report.html"
MARKDOWN = "report.md"


def write(folder: Path, known: "tuple[Experiment, CutSummaries] | None" = None) -> Path:
    """Writes report.html and report.md into a result folder, and returns the path of the first.

    `known` is what `read_with_looks` returned for it, if it has been read already. Judges the
    result first where this Tare has not. Raises InputError where the folder is no result.
    """
    from tare.samples.read.result import readable

    folder = Path(folder)
    with ExitStack() as stack:
        with readable(folder):
            # Meanwhile its owner can put another folder, or a link, in its place.
            same = stack.enter_context(trusted_folder(folder)) if folder.is_dir() else None
            content = _content(read(folder, known, same))
        for name, escape in ((HTML, True), (MARKDOWN, False)):
            text = templates(escape).get_template(f"{name}.j2").render(content)
            replace(folder / name, text, within=same)
    return folder / HTML


@cache
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
        percent=typesetting.percent,
        plural=typesetting.plural,
        safe_text=typesetting.safe,
        typeset=typesetting.typeset,
        cell=markdown.cell,
    )
    return environment


def _content(result: Result) -> dict[str, Any]:
    """Everything that the templates name."""
    from tare.samples.describe.metrics import metrics_per_second
    from tare.samples.engines.hive import read_hive
    from tare.samples.read.result import open_result

    opened = open_result(result.folder)
    costs = read_hive(opened.backend, result.folder, "costs")
    if costs is not None:
        costs = distributions.costs_of(costs, result.places)
    run_rows, more_runs = run_table.rows(result)
    drawn = _pictures(result, opened, costs)
    per_second = metrics_per_second(opened.backend, result.folder)
    drawn |= {
        subject: list(machine_plots.pictures(result, per_second, subject))
        for subject in ("machine", "service")
    }
    metrics = list(tables.metrics(result))
    waterfall_groups = waterfalls.groups(result, opened.samples())
    sections: list[Section] = [
        overview.warnings(result),
        overview.failed(run_rows),
        overview.effects(result, drawn["effects"]),
        overview.over_time(drawn["over_time"]),
        overview.runs_by_block(result, drawn["runs"]),
        overview.metrics(result, metrics),
        recommendations.section(result),
        *experiment_details.requests(drawn),
        slowest.section(result, drawn["slowest"], per_second),
        evidence.spans(result),
        span_percentiles.section(result, opened),
        collected.section(result),
        critical_path.section(result),
        waterfalls.section(waterfall_groups),
        round_trip.section(result),
        experiment_details.processor(result),
        environments.section(result),
        *machine.sections(result, per_second, drawn),
        *experiment_details.layers(result, costs, drawn["own_time"]),
        evidence.numbers(result),
        pooled_t.section(result, drawn["pooled"]),
        shift.section(result),
        distances.section(result),
        warm_up.section(result),
        power.section(result),
        evidence.control(result),
        evidence.limits(result),
        *experiment_details.record(result, _settings(result), _plan(result.folder), more_runs),
    ]
    sections.append(experiment_details.left_out(sections))
    title = typesetting.safe(result.manifest.name or result.folder.name, 60)
    summary = _summary(result)
    budget = f"within the budget of ±{typesetting.percent(result.budget, signed=False)}"
    if any(
        result.threshold(comparison) > result.budget for comparison in result.primary_comparisons
    ):
        budget += ", or what these runs can detect"
    more = _more(result)
    around = f"{title} {summary} {budget} {more}"
    return {
        "result": result,
        "title": title,
        "summary": summary,
        "budget": budget,
        "more": more,
        "first": first_screen(result, around, drawn["pairs"]),
        "groups": in_groups(sections),
        "sections": {section.anchor: section for section in sections},
        "warnings": result.warnings,
        "metrics": metrics,
        "waterfall_groups": waterfall_groups,
        "runs": run_rows,
        "glossary": glossary.WORDS,
        "verdict_words": glossary.VERDICTS,
        "columns": tables,
        "metric_columns": ("condition", "verdict", *tables.METRIC_COLUMNS),
        "metric_rows": [(row.where, row.verdict, *row.cells) for row in metrics],
        "run_columns": run_table.COLUMNS,
    }


def _pictures(result: Result, opened: "samples.Result", costs: "Table | None") -> dict[str, Any]:
    """The figures of requests and runs: `pairs` by place, all others as lists; the `slowest`
    requests and the `pooled` numbers by place."""
    from tare.samples.sql.group_numbers import settled

    names = ("percentiles", "boxes", "lag", "over_time", "own_time")
    drawn: dict[str, Any] = dict.fromkeys(names, ()) | {
        "pairs": {},
        "pooled": {},
        "slowest": {},
        "effects": list(pictures.forest(result)),
        "runs": list(pictures.run_plots(result)),
    }
    requests = distributions.kept(opened, result.places, result.span)
    every = opened.samples()
    if requests is not None and every is not None:
        counted = settled(requests, result.looks.first)
        curves = distributions.curves(counted)
        drawn |= {
            "pairs": pictures.pairs(result, distributions.densities(counted, result.places)),
            "percentiles": list(pictures.percentile_plots(result, curves)),
            "boxes": list(pictures.box_plots(result, counted)),
            "lag": list(pictures.lag_plots(result, requests)),
            "pooled": distributions.pooled(counted, result.places),
            "slowest": find_slowest(counted, every, result.places),
        }
    if every is not None:
        drawn["over_time"] = list(pictures.time_plots(result, every))
    if costs is not None:
        drawn["own_time"] = list(pictures.own_time_plots(result, costs))
    return drawn


def _more(result: Result) -> str:
    """What follows the first screen."""
    parts = []
    if result.warnings:
        parts.append(typesetting.plural(len(result.warnings), "warning"))
    if failed := sum(not run.valid for run in result.runs):
        parts.append(typesetting.plural(failed, "failed run"))
    return f"{', '.join(parts)} and all evidence below" if parts else "All evidence below"


def _summary(result: Result) -> str:
    """The baseline, the number of blocks, where and when they ran."""
    planned = typesetting.plural(result.manifest.blocks, "block")
    done = len({run.block for run in result.runs})
    how = [planned if done >= result.manifest.blocks else f"{typesetting.count(done)} of {planned}"]
    how.append(typesetting.safe(result.manifest.design, 24))
    if len(result.environments) == 1:
        joined = "on" if result.manifest.compare == "conditions" else "with"
        how.append(f"{joined} {typesetting.safe(result.environments[0], 24)}")
    how.append(_day(result.manifest.started))
    against = f"Compared with {typesetting.safe(result.baseline, 40)}"
    return f"{against} in {', '.join(part for part in how if part)}."


def _day(started: str) -> str:
    try:
        day = datetime.fromisoformat(started)
    except ValueError:
        return ""
    return f"{day.day}{typesetting.NO_BREAK}{day:%B}{typesetting.NO_BREAK}{day.year}"


def _settings(result: Result) -> dict[str, Any]:
    """The settings of the experiment, as far as the manifest has them."""
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
    return "\n".join(typesetting.safe(line) for line in text.splitlines())
