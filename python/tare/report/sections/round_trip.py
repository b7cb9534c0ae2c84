# SPDX-License-Identifier: Apache-2.0
"""The section of round trips: what network and stack add to the root span."""

from tare.report.result.result import Result
from tare.report.sections.sections import Section, Table
from tare.report.tables import where
from tare.report.words import count, duration
from tare.terminal import both_ends

COLUMNS = (
    "condition",
    "root span",
    "metric",
    "round trip",
    "root span takes",
    "difference",
    "interval",
    "runs",
)


def section(result: Result) -> Section:
    """A row for each condition and quantile."""
    rows = [
        (
            where(result, one.environment, one.condition),
            both_ends(one.root, 60),
            one.metric,
            duration(one.round_trip_ns),
            duration(one.root_ns),
            duration(one.difference_ns, signed=True),
            "–"
            if one.low is None or one.high is None
            else f"{duration(one.low, signed=True)} to {duration(one.high, signed=True)}",
            count(one.runs),
        )
        for one in result.verdicts.round_trips
    ]
    return Section(
        anchor="round-trip",
        name="Round trip",
        gist="what network and stack add to the root span",
        how="The difference is a quantile of the round trip at the load generator minus the same"
        " quantile of the root span, on average over runs. It contains the network, the kernels on"
        " both sides, what the service does outside of its root span, and under open load the wait"
        " at the generator.",
        tables=[Table("Round trip and root span", COLUMNS, rows, 3)],
        absent="there are no round trips with traces of one root span",
    )
