# SPDX-License-Identifier: Apache-2.0
"""Recommendation 6: the plan declares a micro or a macro benchmark, and does both."""

from tare.lab.recommendations.check_result import CheckResult, broken, kept
from tare.plan import Plan


def judge(plan: Plan) -> CheckResult:
    """By the key `kind`."""
    if plan.kind == "both":
        return kept(
            'kind = "both": the report has the time inside the hook (micro) and of requests (macro)'
        )
    only = f'kind = "{plan.kind}": only one kind is declared'
    has_hook = any(
        layer.type == "hook" for condition in plan.conditions for layer in condition.layers
    )
    more = (
        'kind = "both" declares the time inside the hook, too'
        if has_hook
        else 'kind = "both" needs a layer that takes times inside itself (hook)'
    )
    return broken(f"{only}; {more}")
