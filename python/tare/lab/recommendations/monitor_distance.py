# SPDX-License-Identifier: Apache-2.0
"""Recommendation 5: times are taken as near to the hook as possible, best inside of it."""

from typing import get_args

from tare.lab.recommendations.check_result import CheckResult, broken, kept
from tare.plan import Plan
from tare.plan.schema.layers import LogLayer, SpansLayer
from tare.plan.schema.recommendations import Level

LEVELS: tuple[Level, ...] = get_args(Level)
_HOOKS: dict[str, Level] = {
    "agent": "kernel",
    "hook": "library",
    "link": "library",
    "map": "kernel",
    "proxy": "client",
}
"""Where layers are, by type; a variable or a wrapper may put anything anywhere."""
_TIMED = ("hook",)
"""Layers that take times inside themselves."""


def judge(plan: Plan) -> CheckResult:
    """The distance of the farthest layer to what measures it."""
    stated = plan.recommendations
    types = dict.fromkeys(layer.type for condition in plan.conditions for layer in condition.layers)
    if stated.hook_level is not None:
        hooks: dict[str, Level | None] = {"the hook (stated)": stated.hook_level}
    else:
        hooks = {f"layer {name}": _level(plan, name) for name in types}
    evidence, far = [], False
    for name, level in hooks.items():
        inside = stated.monitor_level is None and name.removeprefix("layer ") in _TIMED
        monitor = stated.monitor_level or (level if inside else "client")
        if level is None:
            far = True
            evidence.append(
                f"{name}: its level is not known (state hook_level), times are taken"
                f" at the {monitor}"
            )
            continue
        assert monitor is not None
        distance = abs(LEVELS.index(level) - LEVELS.index(monitor))
        far = far or distance > 0
        where = "inside the hook" if inside else f"at the {monitor}"
        evidence.append(f"{name}: {level} level, times are taken {where}: distance {distance}")
    if not hooks:
        return kept("no condition has a layer")
    return broken(*evidence) if far else kept(*evidence)


def _level(plan: Plan, name: str) -> Level | None:
    if name in ("log", "spans"):
        layers = [layer for condition in plan.conditions for layer in condition.layers]
        agents = [
            layer.agent
            for layer in layers
            if isinstance(layer, LogLayer | SpansLayer) and layer.type == name
        ]
        return "runtime" if any(agents) else "application"
    return _HOOKS.get(name)
