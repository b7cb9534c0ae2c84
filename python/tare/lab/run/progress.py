# SPDX-License-Identifier: Apache-2.0
"""What an experiment tells the person who waits for it, and how long it will take."""

from collections.abc import Iterable
from typing import Protocol

from tare.lab.run.schedule import Together
from tare.plan import OwnLoad, Plan

START_S = 0.4
"""Start, ready check and stop of a small service; a large service takes longer than was said."""
SWITCH_S = 0.3
"""To stop one small agent and to start the next."""

CAPACITY_S = 20.0


class Progress(Protocol):
    """Receives what happens, in seconds of the time that the experiment was estimated to take."""

    def begin(self, total_s: float) -> None:
        """The experiment begins; it will take about so long."""

    def group(self, text: str) -> None:
        """Conditions of a block are started together."""

    def within(self, elapsed_s: float) -> None:
        """The load on the group has been going on for so long."""

    def group_done(self, estimated_s: float) -> None:
        """The group is stored; it had been estimated to take so long."""

    def note(self, text: str) -> None:
        """Something that the user should know."""

    def end(self) -> None:
        """The experiment is over."""


def group_seconds(plan: Plan, conditions: int) -> float:
    """The estimated time of a group of conditions that are up together."""
    load = plan.load
    if plan.design_used == "alternating" and isinstance(load, OwnLoad):
        turns = conditions * plan.turns * (SWITCH_S + (plan.settle + plan.turn) / 1e9)
        return START_S + load.warmup / 1e9 + turns
    warmup = load.warmup if isinstance(load, OwnLoad) else 0
    return START_S + conditions * (START_S + (warmup + load.duration) / 1e9)


def plan_seconds(plan: Plan, to_do: Iterable[Together]) -> float:
    """The estimated time of what is to be carried out of a plan."""
    measure_first = isinstance(plan.load, OwnLoad) and plan.load.needs_capacity
    seconds = sum(group_seconds(plan, len(together.runs)) for together in to_do)
    return seconds + CAPACITY_S * measure_first
