# SPDX-License-Identifier: Apache-2.0
"""The sections about requests and about the experiment itself."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tare.report import tables
from tare.report.pictures import Picture
from tare.report.result.result import Result
from tare.report.sections import glossary
from tare.report.sections.sections import Figures, Section, Table
from tare.report.typesetting import plural

if TYPE_CHECKING:
    from tare.samples.sql.table import Table as Samples


def requests(pictures: Mapping[str, Sequence[Picture]]) -> list[Section]:
    """Percentiles, box plots, and requests in their order."""
    return [
        Section(
            anchor="percentiles",
            name="Percentiles",
            gist="latency from the fastest request to the slowest",
            how="Each further nine takes the same width, which makes the tail readable: at 99 %,"
            " one request of a hundred is slower.",
            figures=[
                Figures(
                    pictures["percentiles"],
                    "Thin: one run. Bold: the median over the runs of a condition. The warm-up is"
                    " left out. A curve ends where fewer than 10 requests of its run are slower."
                    " Both axes are logarithmic.",
                )
            ],
        ),
        Section(
            anchor="boxes",
            name="Box plots",
            gist="the middle half of the requests",
            figures=[
                Figures(
                    pictures["boxes"],
                    "Tukey box plots over the requests of all runs after the warm-up. The box is"
                    " the middle half, the line the median. A whisker ends at the last request"
                    " within 1.5 times the width of the box.",
                )
            ],
        ),
        Section(
            anchor="lag",
            name="Request by request",
            gist="whether the service reaches a steady state",
            how="If the level drifts or jumps, the service did not reach a steady state.",
            figures=[
                Figures(
                    pictures["lag"],
                    "The first 10,000 requests of the first valid run of each condition, with the"
                    " warm-up, latency on a logarithmic axis. All of them are drawn.",
                )
            ],
        ),
    ]


def processor(result: Result) -> Section:
    """CPU time per request, and slices that are left out."""
    return Section(
        anchor="processor",
        name="CPU time",
        gist="CPU time per request, and slices that are left out",
        how="Median over runs. CPU time does not grow if another program takes the CPU. Slices in"
        " which another program had the CPU are left out for all conditions of a block together.",
        tables=[
            Table(
                "CPU time per request and slices left out",
                tables.CPU_COLUMNS,
                list(tables.processor(result)),
            )
        ],
    )


def layers(result: Result, costs: "Samples | None", pictures: Sequence[Picture]) -> list[Section]:
    """The own time of layers, and its share of the difference."""
    if costs is None:
        return []
    return [
        Section(
            anchor="own-time",
            name="The layer's own time",
            gist="time inside of the layer, by function",
            how="Time inside of the layer, without the call that it forwards. The layer's own clock"
            " measures it at every call. docs/hook.md and docs/link.md explain the counters.",
            figures=[
                Figures(
                    pictures,
                    "Share of each function's calls by own time, on a logarithmic axis without the"
                    " fastest and the slowest 0.1 %. Gaps on the left are steps of the clock.",
                )
            ],
            tables=[
                Table(
                    "Calls and own time by function",
                    tables.COST_COLUMNS,
                    list(tables.costs(result, costs)),
                    3,
                )
            ],
            facts=list(tables.whole_layers(result, costs)),
        ),
        Section(
            anchor="micro-macro",
            name="Inside and outside the layer",
            gist="the layer's own time as a share of the difference",
            how="Own time per request is measured inside the layer: at p50 the median of each"
            " function times its calls per request, at the mean all own time over all requests."
            " The difference is measured outside, on whole requests. The rest of the difference is"
            " not in the layer's clock: colder caches, reading the clock itself, or noise. The"
            " layer also counts calls of the warm-up, so its share is an upper bound.",
            tables=[
                Table(
                    "Own time and difference",
                    tables.MICRO_MACRO_COLUMNS,
                    list(tables.micro_macro(result, costs)),
                    2,
                )
            ],
        ),
    ]


def record(result: Result, settings: Mapping[str, Any], plan: str, more: int) -> list[Section]:
    """Notes, runs, settings and machine, the plan, and what the terms mean."""
    control = " The control is the baseline once more in every block." * bool(
        result.experiment.control
    )
    cut = f" {plural(more, 'more valid row')} are not shown." if more else ""
    facts = [*tables.facts(settings), *tables.facts(result.manifest.machine)]
    return [
        Section(
            anchor="notes",
            name="Notes",
            gist=plural(len(result.notes), "note"),
            lines=result.notes,
        ),
        Section(
            anchor="runs",
            name="All runs",
            gist=plural(len(result.runs), "run"),
            how="Each span has its own row. The numbers are of requests that count: successful,"
            " after the warm-up, in slices that are not left out." + control + cut,
            rows=1 + len(result.runs),
        ),
        Section(
            anchor="settings",
            name="Settings and machine",
            gist="how and where the experiment ran",
            facts=facts,
        ),
        Section(anchor="plan", name="Plan", gist="the plan as it ran", text=plan),
        Section(
            anchor="terms",
            name="Terms",
            gist="what the words of this report mean",
            rows=len(glossary.WORDS),
        ),
    ]


def left_out(sections: Sequence[Section]) -> Section:
    """The sections that are empty, and why."""
    empty = [
        (section.name, section.absent)
        for section in sections
        if not section.shown and section.absent
    ]
    return Section(
        anchor="left-out",
        name="Not shown",
        gist="sections without data, and the reasons",
        facts=empty,
    )
