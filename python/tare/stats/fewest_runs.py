# SPDX-License-Identifier: Apache-2.0
"""How many runs an experiment needs before any verdict is possible."""

from tare.stats.permutation import least_p

LEAST_PAIRED = 6
LEAST_UNPAIRED = 5
"""Fewer runs say too little about the spread between runs, whatever alpha is."""


def fewest_runs(alpha: float, paired: bool) -> int:
    """The fewest blocks (paired) or runs per condition whose permutation test can reach `alpha`.

    The number of conditions does not matter where a block's sign is flipped for all of them at
    once: the least p of n blocks is 2 / 2^n. Raises ValueError unless 0 < alpha < 1.
    """
    if not 0 < alpha < 1:
        raise ValueError(f"alpha is {alpha}, expected a number between 0 and 1")
    runs = LEAST_PAIRED if paired else LEAST_UNPAIRED
    while least_p(runs, paired) > alpha:
        runs += 1
    return runs
