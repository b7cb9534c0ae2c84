# SPDX-License-Identifier: Apache-2.0
"""The plan: what is declared before anything is measured."""

from tare.plan.loads import CommandLoad, OwnLoad, TareLoad, TcpLoad
from tare.plan.options import PlanOptions, from_options
from tare.plan.reading import load, parse, refused
from tare.plan.schema import Condition, Plan, Ready, Service
from tare.plan.values import expected

__all__ = [
    "CommandLoad",
    "Condition",
    "OwnLoad",
    "Plan",
    "PlanOptions",
    "Ready",
    "Service",
    "TareLoad",
    "TcpLoad",
    "expected",
    "from_options",
    "load",
    "parse",
    "refused",
]
