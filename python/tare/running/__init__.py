# SPDX-License-Identifier: Apache-2.0
"""What Tare has running on this machine, and what processes left behind."""

from tare.running.leftovers import remove_leftovers
from tare.running.programs import Program, programs

__all__ = ["Program", "programs", "remove_leftovers"]
