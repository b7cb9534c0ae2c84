# SPDX-License-Identifier: Apache-2.0
"""The plan: what is declared before anything is measured."""

from tare.plan.loads import CommandLoad, OwnLoad, TareLoad, TcpLoad
from tare.plan.reading import load, parse, refused
from tare.plan.schema import Condition, Plan, Ready, Service
from tare.plan.values import expected

__all__ = [
    "CommandLoad",
    "Condition",
    "OwnLoad",
    "Plan",
    "Ready",
    "Service",
    "TareLoad",
    "TcpLoad",
    "expected",
    "load",
    "parse",
    "refused",
]
