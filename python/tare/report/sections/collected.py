# SPDX-License-Identifier: Apache-2.0
"""The section of spans that traveled through the plan's pipeline."""

from collections.abc import Iterator, Sequence

from tare.report.result.result import Result
from tare.report.sections.sections import Section, Table
from tare.report.tables import where
from tare.report.typesetting import count

COLUMNS = (
    "run",
    "condition",
    "received by Tare",
    "in Kafka",
    "in Elasticsearch",
    "missing",
    "additional",
    "other duration",
)


def section(result: Result) -> Section:
    """A row per run."""
    return Section(
        anchor="collected",
        name="Collected spans",
        gist="whether the pipeline stored the spans that Tare received",
        how="The services sent each span to Tare's receiver and to the pipeline. This experiment"
        " has the spans of Elasticsearch, in whole microseconds. Missing: received by Tare, but not"
        " stored. Additional: stored, but not received. The warm-up is counted, too.",
        tables=[Table("Spans per run", COLUMNS, list(_rows(result)), 2)],
        absent="the plan has no pipeline for spans ([collect])",
    )


def _rows(result: Result) -> Iterator[Sequence[str]]:
    for run in result.runs:
        if (found := run.collected) is not None:
            yield (
                str(run.run),
                where(result, run.environment, result.called(run.condition)),
                *map(count, (found.received, found.queued, found.stored)),
                *map(count, (found.missing, found.additional, found.different)),
            )
