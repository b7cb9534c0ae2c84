# SPDX-License-Identifier: Apache-2.0
from dataclasses import replace

from tare.report.sections.controls import told
from tare.verdict.judgement import Control


def control(environment: str = "host", alarm: bool = False) -> Control:
    return Control(environment, 8, "p95", 0.012, 0.0004 if alarm else 0.43, alarm)


def test_one_control_and_all_on_this_machine() -> None:
    assert told([control()], 2, 87) == [
        "control: the baseline does not differ from itself over 8 blocks (most in p95: +1.2 %,"
        " p = 0.430)",
        "on this machine 2 of 87 controls differed so far (95 % interval of the rate: 0.28 % to"
        " 8.1 %); about 1 % is expected by chance",
    ]


def test_environments_are_named_where_there_are_several() -> None:
    first, second = told([control(), control("netns", alarm=True)], 0, 0)
    assert first.startswith("control, host: the baseline does not differ")
    assert second.startswith("control, netns: the baseline differs from itself")
    assert second.endswith("p < 0.001)")


def test_a_control_of_two_blocks_cannot_tell_yet() -> None:
    (line,) = told([replace(control(), runs=2)], 0, 0)
    assert line == (
        "control: 2 blocks are too few to check whether the baseline differs from itself;"
        " 6 are needed"
    )


def test_without_a_control_nothing_is_told() -> None:
    assert told([], 2, 87) == []
