# SPDX-License-Identifier: Apache-2.0
"""What runs that failed, or were too few, leave unsaid."""

from dataclasses import replace

from tare.samples.model import Experiment
from tare.verdict import judge
from tare.verdict.judge_test import blocks, noisy, primary, run


def failing(hook: int, plain: int) -> Experiment:
    """Twenty blocks without an effect, of which so many runs failed."""
    of = blocks(noisy(1.0), 20)
    last = {"hook": hook, "plain": plain}
    return replace(
        of,
        runs=tuple(
            run(original.condition, original.block, reason="1.50% of the requests failed")
            if original.block <= last[original.condition]
            else original
            for original in of.runs
        ),
    )


def test_survivors_are_not_compared_with_all() -> None:
    found = primary(judge(failing(14, 0)))
    assert found.verdict == "inconclusive"
    assert found.reason.startswith("14 of 20 runs of 'hook' failed and 0 of 20 runs of 'plain'")
    # What hits both alike, or a few, chooses nobody.
    assert primary(judge(failing(10, 8))).verdict == "unchanged"
    assert primary(judge(failing(5, 0))).verdict == "unchanged"


def test_what_too_few_runs_see_is_not_told() -> None:
    found = primary(judge(blocks(noisy(1.5), 5)))
    assert (found.verdict, found.mde) == ("inconclusive", None)
    assert primary(judge(blocks(noisy(1.5), 6))).mde is not None


def test_of_two_blocks_and_many_comparisons_a_change_that_none_would_see_is_not_told() -> None:
    of = blocks(lambda block: (1.0, 2.6)[block % 2], 2)
    spans = tuple(replace(original, span=f"s{n}") for n in range(100) for original in of.runs)
    assert judge(replace(of, runs=spans)).comparisons[0].mde is None
