# SPDX-License-Identifier: Apache-2.0
"""The page of a calibration: what is detected from which delay on, and the thesis's figures."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tare.atomic_files import replace
from tare.calibration.detection import NAMES, SHARE, SINGLE_PAIRS, STATISTICS
from tare.report.figures.calibration import Ranges, draw_ranges
from tare.report.figures.canvas import inline
from tare.report.figures.marks import SERIES
from tare.report.page.page import HTML, templates
from tare.report.pictures import Picture
from tare.report.sections.calibration_curves import shares_of
from tare.report.typesetting import NO_BREAK, duration, p_value, safe

if TYPE_CHECKING:
    from tare.calibration.detection import Calibration, Detection, Range

COLUMNS = ("statistic", "detects", "detected at that delay", "false alarms", "p without a delay")
_PUBLISHED = {
    "ks-pair": ("Kolmogorov–Smirnov", SERIES[2]),
    "ad-pair": ("Anderson–Darling", SERIES[1]),
}


def write(found: "Calibration", folder: Path) -> Path:
    """Writes report.html into the folder of a calibration, and returns its path."""
    content = {
        "title": safe(found.name, 60),
        "found": found,
        "columns": COLUMNS,
        "share": f"{SHARE * 100:.0f}{NO_BREAK}%",
        "cards": [_card(place, detections) for place, detections in found.by_place.items()],
        "rows": {
            place: [_row(detection) for detection in detections]
            for place, detections in found.by_place.items()
        },
        "detected": [_shares(place, detections) for place, detections in found.by_place.items()],
        "published": [_ranges(place, detections) for place, detections in found.by_place.items()],
    }
    page = templates(escape=True).get_template("calibration.html.j2").render(content)
    replace(folder / HTML, page)
    return folder / HTML


def _card(place: str, detections: "Sequence[Detection]") -> dict[str, str]:
    """The median, which most verdicts rest on."""
    median = next(detection for detection in detections if detection.statistic == "p50")
    reached = median.limit_ns is not None
    limit = "unknown" if median.undetected_ns is None else duration(median.undetected_ns)
    return {
        "place": safe(place, 60),
        "limit": limit if reached or median.undetected_ns is None else f"over {limit}",
        "reason": f"detected at p50 in {median.at_limit}" if reached else f"p50: {median.said}",
    }


def _row(detection: "Detection") -> tuple[str, ...]:
    none = detection.steps[0]
    p = "–" if none.p is None else f"{p_value(none.p.least)} to {p_value(none.p.most)}"
    return NAMES[detection.statistic], detection.said, str(detection.at_limit), str(none), p


def _shares(place: str, detections: "Sequence[Detection]") -> Picture:
    shares = {
        detection.statistic: {
            step.delay_ns: step.share for step in detection.steps if step.repetitions
        }
        for detection in detections
        if detection.statistic in STATISTICS
    }
    return shares_of(place, shares)


def _ranges(place: str, detections: "Sequence[Detection]") -> Picture:
    """Statistic and p of both published tests, side by side."""
    shown = {
        detection.statistic: detection
        for detection in detections
        if detection.statistic in SINGLE_PAIRS
    }
    panels, said = [], []
    for kind, what in (("value", "statistic"), ("p", "p-value")):
        for name in SINGLE_PAIRS:
            title, colour = _PUBLISHED[name]
            ranges: list[tuple[int, Range]] = [
                (step.delay_ns, getattr(step, kind))
                for step in shown[name].steps
                if getattr(step, kind) is not None
            ]
            panels.append(
                Ranges(
                    f"{title}: {what}",
                    colour,
                    [delay for delay, _ in ranges],
                    [bounds.least for _, bounds in ranges],
                    [bounds.mean for _, bounds in ranges],
                    [bounds.most for _, bounds in ranges],
                )
            )
            numbers = ", ".join(
                f"{bounds.mean:.3g} at {duration(delay)}" for delay, bounds in ranges
            )
            said.append(f"{title}, mean {what} {numbers}")
    draw = partial(draw_ranges, panels=panels)
    return Picture(place, inline(draw, f"Single pairs of runs: {'; '.join(said)}."))
