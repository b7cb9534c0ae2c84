# SPDX-License-Identifier: Apache-2.0
"""The output of a foreign generator has no usable times, or too many rows that are no requests."""

from tare.lab.result.measured import Measured
from tare.plan import CommandLoad, OwnLoad
from tare.samples.describe.usable_rows import too_many_lost


def invalid_reason(found: Measured, load: OwnLoad | CommandLoad) -> str | None:
    """A clock that was set back comes first: its times say nothing."""
    return found.stepped or too_many_lost(found.lost, load.max_errors)
