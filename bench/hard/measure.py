# SPDX-License-Identifier: Apache-2.0
"""Verdicts on hard cases of known truth, held against their bars."""

from bench.cases import publish
from bench.hard import error_rates

REPETITIONS, QUICK = 1_000, 20
"""Experiments for each case: a level of 5 % takes a thousand to be seen."""


def run(quick: bool) -> bool:
    """Measures all cases; returns whether all bars are met."""
    repetitions = QUICK if quick else REPETITIONS
    about = (
        f"Simulated: {repetitions:,} experiments a case, judged by all rules"
        " (`bench/hard/hard_cases.py`, `bench/verdict/families.py`)."
    )
    command = f"{'BENCH=quick ' * quick}make bench-verdict"
    return publish("hard", error_rates.cases(repetitions), command, about)
