# SPDX-License-Identifier: Apache-2.0
"""How often each delay is detected, of a calibration or of the limits that a result rests on."""

from collections.abc import Iterator, Mapping
from functools import partial
from math import nan

from tare.calibration.detection import NAMES, SHARE, STATISTICS
from tare.report.figures.calibration import Curve, draw_shares
from tare.report.figures.canvas import inline
from tare.report.figures.marks import SERIES
from tare.report.pictures import Picture
from tare.report.result.result import Result
from tare.report.typesetting import duration, percent, safe

_COLOURS = dict(zip(STATISTICS, SERIES[1:], strict=False))


def known(result: Result) -> Iterator[Picture]:
    """The curves of the calibration whose limits held for a result, by environment and span."""
    places: dict[str, dict[str, dict[int, float]]] = {}
    for limit in result.manifest.limits:
        if limit.statistic not in STATISTICS or not limit.shares:
            continue
        place = f"{limit.environment}, {limit.span}, measured {limit.date}"
        shares = {int(delay): share for delay, share in limit.shares.items()}
        places.setdefault(safe(place), {})[limit.statistic] = shares
    for place, found in places.items():
        yield shares_of(place, {name: found[name] for name in STATISTICS if name in found})


def shares_of(place: str, shares: Mapping[str, Mapping[int, float]]) -> Picture:
    """The share of repetitions in which each statistic detects each delay in ns."""
    delays = sorted({delay for of in shares.values() for delay in of})
    curves = [
        Curve(NAMES[name], _COLOURS[name], delays, [of.get(delay, nan) for delay in delays])
        for name, of in shares.items()
    ]
    said = "; ".join(
        f"{NAMES[name]} "
        + ", ".join(
            f"{percent(share, signed=False)} at {duration(delay)}" for delay, share in of.items()
        )
        for name, of in shares.items()
    )
    return Picture(
        place,
        inline(
            partial(draw_shares, curves=curves, share=SHARE),
            f"Share of repetitions that detect the delay: {said}.",
        ),
        [(NAMES[name], _COLOURS[name]) for name in shares],
    )
