# SPDX-License-Identifier: Apache-2.0
"""The plan: what is declared before anything is measured."""

from tare.plan.reading import load, parse, refused
from tare.plan.schema import CommandLoad, Condition, Plan, Ready, Service, TareLoad
from tare.plan.values import expected

__all__ = [
    "CommandLoad",
    "Condition",
    "Plan",
    "Ready",
    "Service",
    "TareLoad",
    "expected",
    "load",
    "parse",
    "refused",
]
