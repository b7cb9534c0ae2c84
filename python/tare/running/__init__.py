# SPDX-License-Identifier: Apache-2.0
"""What Tare has running on this machine, and what processes left behind."""

from tare.running.created_resources import Made, made_things, remove_abandoned
from tare.running.directory import runtime_directory_fault
from tare.running.leftovers import remove_leftovers
from tare.running.programs import Program, programs

__all__ = [
    "Made",
    "Program",
    "made_things",
    "programs",
    "remove_abandoned",
    "remove_leftovers",
    "runtime_directory_fault",
]
