# SPDX-License-Identifier: Apache-2.0
"""What the hidden A/A pairs say: of this experiment, and of all on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tare.stats.fewest_runs import LEAST_PAIRED
from tare.verdict.number_text import count, percent

if TYPE_CHECKING:
    from tare.verdict.judgement import Control


def told(controls: Sequence[Control], alarms: int, of: int) -> list[str]:
    """Lines for a person; `alarms` of `of` controls of this machine differed from their baseline.

    None where the experiment has no control.
    """
    lines = []
    for control in controls:
        where = f", {control.environment}" if len(controls) > 1 else ""
        if control.runs < LEAST_PAIRED:
            lines.append(
                f"control{where}: {count(control.runs, 'block')} are too few to check whether the"
                f" baseline differs from itself; {LEAST_PAIRED} are needed"
            )
            continue
        said = "differs from itself" if control.alarm else "does not differ from itself"
        lines.append(
            f"control{where}: the baseline {said} over {count(control.runs, 'block')} (most in"
            f" {control.metric}: {percent(control.relative)}, p {_small(control.p_adjusted)})"
        )
    if controls and of:
        from tare.stats.proportion import clopper_pearson

        low, high = (percent(share, signed=False) for share in clopper_pearson(alarms, of))
        lines.append(
            f"on this machine {alarms} of {count(of, 'control')} differed so far (95 % interval of"
            f" the rate: {low} to {high}); about 1 % is expected by chance"
        )
    return lines


def _small(p: float) -> str:
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"
