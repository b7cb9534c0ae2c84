# SPDX-License-Identifier: Apache-2.0
from math import log
from statistics import stdev

import pytest
from tests.soak.null_and_delay import block_sd

from tare.samples import Run


def run(block: int, condition: str, p50: float, *, valid: bool = True) -> Run:
    return Run(
        environment="host",
        condition=condition,
        block=block,
        run=1,
        span="request",
        requests=100,
        errors=0,
        answered=100,
        started_ns=None,
        summaries={"p50": p50},
        valid=valid,
    )


def test_the_spread_between_blocks_is_without_the_control() -> None:
    ratios = [1.02, 1.05, 0.99]
    runs = [
        run(block, condition, p50)
        for block, ratio in enumerate(ratios)
        for condition, p50 in (("one", 1e5), ("two", 1e5 * ratio), ("one~again", 3e5))
    ]
    assert block_sd(runs) == pytest.approx(stdev(log(ratio) for ratio in ratios))


def test_blocks_without_both_conditions_do_not_count() -> None:
    runs = [run(1, "one", 1e5), run(1, "two", 2e5), run(2, "one", 1e5)]
    assert block_sd([*runs, run(2, "two", 2e5, valid=False)]) is None
