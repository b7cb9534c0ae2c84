# SPDX-License-Identifier: Apache-2.0
"""Recommendation 7: the load is like the typical use of the hooked functions, as described."""

from typing import TYPE_CHECKING

from tare.lab.recommendations.check_result import CheckResult, broken, kept
from tare.lab.recommendations.observations import RunObservations
from tare.plan import Plan

if TYPE_CHECKING:
    import pyarrow as pa

_COUNTERS = {"sockets": "calls_socket", "files": "calls_other"}
NAMED = 8
"""Functions in the evidence."""


def judge(run: RunObservations) -> CheckResult | None:
    """By the text of the plan, and what the hook counted; None for a run of a plan with hooks that
    has none itself."""
    stated = run.plan.recommendations
    costs = run.costs.get("hook")
    if costs is None and has_hook(run.plan):
        return None
    evidence, missing = [], []
    if stated.typical_use is not None:
        evidence.append(f"the plan states: {stated.typical_use}")
    else:
        evidence.append("the plan does not describe the typical use (typical_use)")
    if costs is None:
        evidence.append("no layer counts calls")
    else:
        mix = call_mix(costs)
        missing = [use for use in stated.uses if not sum(calls[use] for calls in mix.values())]
        calls = sorted(mix.items(), key=lambda function: -sum(function[1].values()))
        evidence += [_line(name, calls) for name, calls in calls[:NAMED]]
        evidence += [f"typical use ({use}): no call of the load is on {use}" for use in missing]
    bad = stated.typical_use is None or missing
    return broken(*evidence) if bad else kept(*evidence)


def has_hook(plan: Plan) -> bool:
    """Whether some condition counts calls."""
    return any(layer.type == "hook" for condition in plan.conditions for layer in condition.layers)


def call_mix(costs: "pa.Table") -> dict[str, dict[str, int]]:
    """The number of calls of each hooked function, by what they were made for."""
    found: dict[str, dict[str, int]] = {}
    metrics = {metric: use for use, metric in _COUNTERS.items()}
    for row in costs.select(["function", "metric", "count"]).to_pylist():
        if row["metric"] in metrics and row["function"] is not None:
            calls = found.setdefault(row["function"], dict.fromkeys(_COUNTERS, 0))
            calls[metrics[row["metric"]]] += row["count"] or 0
    return {name: calls for name, calls in found.items() if sum(calls.values())}


def _line(name: str, calls: dict[str, int]) -> str:
    number = sum(calls.values())
    return f"{name}: {number:,} calls, {100 * calls['sockets'] / number:.1f} % on sockets"
