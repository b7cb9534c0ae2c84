# SPDX-License-Identifier: Apache-2.0
"""The lab: carries a plan out and stores what was measured."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tare.lab.run.progress import Progress
    from tare.plan import Plan


def carry_out(plan: "Plan", folder: "Path", progress: "Progress", resume: bool = False) -> "Path":
    """See `tare.lab.run.experiment.carry_out`, which is imported when it is needed."""
    from tare.lab.run import experiment

    return experiment.carry_out(plan, folder, progress, resume)
