# SPDX-License-Identifier: Apache-2.0
"""The section of round trips: what network and stack add to the root span."""

from tare.report.result.result import Result
from tare.report.sections.sections import Section, Table
from tare.report.tables import where
from tare.report.typesetting import count, duration
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
            where(result, trip.environment, trip.condition),
            both_ends(trip.root, 60),
            trip.metric,
            duration(trip.round_trip_ns),
            duration(trip.root_ns),
            duration(trip.difference_ns, signed=True),
            "–"
            if trip.low is None or trip.high is None
            else f"{duration(trip.low, signed=True)} to {duration(trip.high, signed=True)}",
            count(trip.runs),
        )
        for trip in result.verdicts.round_trips
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
