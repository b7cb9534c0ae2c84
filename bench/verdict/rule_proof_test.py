# SPDX-License-Identifier: Apache-2.0
"""Every rule that forbids verdicts has a trap, and is left out only while it is to be."""

import pytest
from bench.verdict import rule_proof

from tare.verdict.rules import rules

VERDICTS = {"changed", "unchanged", "shape_changed", "undecided"}


def test_every_rule_that_forbids_verdicts_has_a_trap() -> None:
    forbidding = {rule.reason.__name__ for rule in rules.RULES} - VERDICTS
    assert {reason for trap in rule_proof.traps() for reason in trap.rule.split(", ")} == forbidding


def test_a_rule_is_left_out_for_a_while() -> None:
    every = rules.RULES
    with rule_proof.without("by_clock"):
        assert len(rules.RULES) == len(every) - 1
    assert rules.RULES is every
    with (
        pytest.raises(ValueError, match="no rules have the reasons 'none'"),
        rule_proof.without("none"),
    ):
        pass
    assert rules.RULES is every


def test_a_late_clock_makes_verdicts_wrong_without_its_rule() -> None:
    (trap,) = (trap for trap in rule_proof.traps() if trap.rule == "by_clock")
    found = rule_proof.prevented((trap, 4))
    assert (found.wrong, found.wrong_without, found.lost) == (0, 100, 0)
