# SPDX-License-Identifier: Apache-2.0
import json
from dataclasses import replace

import pytest

from tare.calibration.detection import Calibration, Detection, Range, Step

RANGE = Range(0.1, 0.2, 0.3)


def detection(*detected: int, of: int = 10, statistic: str = "p50") -> Detection:
    """Delays of 0, 1, 2 ... µs, each detected so often."""
    steps = [Step(1000 * us, hits, of, RANGE, None) for us, hits in enumerate(detected)]
    return Detection("host", "request", statistic, 1.3e6, 0.05, tuple(steps))


@pytest.mark.parametrize(
    ("detected", "limit_us", "said"),
    [
        ((0, 3, 8, 10), 2, "from 2.00 µs"),
        ((0, 8, 8, 8), 1, "from 1.00 µs"),
        ((2, 10, 10), 1, "from 1.00 µs"),
        # What is detected must not be lost again by a larger delay.
        ((0, 9, 7, 10), 3, "from 3.00 µs"),
        ((0, 10, 10, 7), None, "not up to 3.00 µs"),
        ((0, 0, 0), None, "not up to 2.00 µs"),
        # 3 of 10 where there is nothing: more than 5 %, whatever chance did.
        ((3, 10, 10), None, "false alarms"),
        ((0,), None, "not measured"),
    ],
)
def test_the_limit_is_the_least_delay_detected_as_all_larger_ones(
    detected: tuple[int, ...], limit_us: int | None, said: str
) -> None:
    found = detection(*detected)
    assert found.limit_ns == (None if limit_us is None else 1000 * limit_us)
    assert found.said == said


def test_later_verdicts_bear_in_mind_what_was_not_detected() -> None:
    assert detection(0, 5, 9).undetected_ns == 2000
    assert detection(0, 5, 5).undetected_ns == 2000
    assert detection(9, 9, 9).undetected_ns is None
    assert detection(0, 5, 9, statistic="ks-pair").undetected_ns is None


def unmeasured(detection: Detection, *places: int) -> Detection:
    steps = [
        replace(step, detected=0, repetitions=0, p=None) if place in places else step
        for place, step in enumerate(detection.steps)
    ]
    return replace(detection, steps=tuple(steps))


@pytest.mark.parametrize(
    ("detection", "undetected_us", "said"),
    [
        (unmeasured(detection(0, 5, 9, 0), 3), 2, "from 2.00 µs (not measured: 3.00 µs)"),
        (unmeasured(detection(0, 9, 0, 9), 2), 1, "from 1.00 µs (not measured: 2.00 µs)"),
        (
            unmeasured(detection(0, 5, 0), 0, 2),
            1,
            "not up to 1.00 µs (not measured: 0 ns, 2.00 µs)",
        ),
        (unmeasured(detection(0, 0, 0), 1, 2), None, "not measured"),
    ],
)
def test_a_delay_that_was_never_measured_is_not_one_that_is_not_detected(
    detection: Detection, undetected_us: int | None, said: str
) -> None:
    assert detection.undetected_ns == (None if undetected_us is None else 1000 * undetected_us)
    assert detection.said == said
    found = replace(calibration(), detections={"short": (detection,)}).limits
    measured = {str(step.delay_ns) for step in detection.steps if step.repetitions}
    assert [set(limit.shares) for limit in found] == ([measured] if undetected_us else [])


def test_the_share_at_the_limit_stands_with_its_interval() -> None:
    assert str(detection(0, 8, 10).at_limit) == "8 of 10 (44–97 %)"
    assert detection(0, 1, 2).at_limit.delay_ns == 2000
    assert str(detection(0, 0, of=0).at_limit) == "0 of 0 (0–100 %)"


def test_a_range_of_nothing_is_none() -> None:
    assert Range.of([]) is None
    assert Range.of([3.0, 1.0, 2.0]) == Range(1.0, 2.0, 3.0)


def calibration() -> Calibration:
    short = detection(0, 8, 10)
    return Calibration(
        name="try",
        date="2026-01-01T00:00:00+00:00",
        machine="m",
        version="1.0",
        blocks=6,
        repetitions=10,
        services={"short": "serve", "long": "serve slowly"},
        detections={
            "short": (short, replace(short, statistic="ks-pair")),
            "long": (replace(short, level_ns=27e6),),
        },
    )


def test_only_what_verdicts_rest_on_is_kept_each_for_its_service() -> None:
    first, second = calibration().limits
    assert (first.statistic, first.service, first.undetected_ns) == ("p50", "serve", 1000)
    assert first.shares == {"0": 0.0, "1000": 0.8, "2000": 1.0}
    assert (second.service, second.level_ns) == ("serve slowly", 27e6)


def test_a_statistic_that_raises_alarms_is_kept_as_one() -> None:
    (limit,) = replace(calibration(), detections={"short": (detection(9, 9, 9),)}).limits
    assert limit.undetected_ns is None


def test_places_are_called_by_request_and_level_and_where_there_are_several() -> None:
    found = calibration()
    assert list(found.by_place) == ["short: 1.30 ms", "long: 27.0 ms"]
    elsewhere = replace(detection(0, 1), environment="netns")
    two = replace(found, detections={"short": (detection(0, 1), elsewhere)})
    assert list(two.by_place) == [
        "short, host, request: 1.30 ms",
        "short, netns, request: 1.30 ms",
    ]


def test_json_has_everything_by_request() -> None:
    found = json.loads(json.dumps(calibration().to_json()))
    detection = found["requests"]["short"]["detections"][0]
    assert detection["limit_ns"] == 1000
    assert detection["steps"][1] == {
        "delay_ns": 1000,
        "detected": 8,
        "repetitions": 10,
        "share": 0.8,
        "interval": {
            "low": pytest.approx(0.4439, abs=1e-4),
            "high": pytest.approx(0.9748, abs=1e-4),
        },
        "p": {"least": 0.1, "mean": 0.2, "most": 0.3},
        "value": None,
    }
