# SPDX-License-Identifier: Apache-2.0
"""The plan: what is declared before anything is measured."""

from tare.plan.schema.loads import CommandLoad, OwnLoad, TareLoad, TcpLoad
from tare.plan.schema.plan import Condition, Plan
from tare.plan.schema.services import Ready, Service
from tare.plan.schema.values import expected
from tare.plan.text.isolated import isolated, left_out
from tare.plan.text.options import PlanOptions, from_options
from tare.plan.text.parser import load, parse, refused

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
    "isolated",
    "left_out",
    "load",
    "parse",
    "refused",
]
