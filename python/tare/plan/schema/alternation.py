# SPDX-License-Identifier: Apache-2.0
"""What a plan needs whose layers cover the machine: they are switched on and off in turns."""

from typing import TYPE_CHECKING

from tare.plan.schema.layers import Layer
from tare.plan.schema.loads import OwnLoad
from tare.plan.schema.values import expected

if TYPE_CHECKING:
    from tare.plan.schema.plan import Condition, Plan

KEYS = ("turn", "turns", "settle")


def whole_machine(condition: "Condition") -> list[Layer]:
    """The layers of a condition that are on in its turns only."""
    return [layer for layer in condition.layers if layer.whole_machine]


def of_service(condition: "Condition") -> list[Layer]:
    """The layers of a condition that the service has in all turns."""
    return [layer for layer in condition.layers if not layer.whole_machine]


def check(plan: "Plan") -> None:
    """Raises Pydantic's error for a plan whose design and layers do not fit together."""
    covers = any(whole_machine(condition) for condition in plan.conditions)
    if plan.design_used != "alternating":
        if covers:
            raise expected(
                'design = "alternating": a layer covers the whole machine, so that conditions'
                " cannot be measured side by side",
                "design",
            )
        if key := next((key for key in KEYS if key in plan.model_fields_set), None):
            raise expected(f'design = "alternating" with {key}', key)
        return
    if plan.compare == "environments":
        raise expected('compare = "conditions" with design = "alternating"', "compare")
    if not covers:
        raise expected(
            "a layer that covers the machine (agent, map) in some condition", "conditions"
        )
    if kind := next((each.type for each in plan.environments if each.has_generator), None):
        wanted = f'no environment of type "{kind}" with design = "alternating"'
        raise expected(wanted, "environments")
    if not isinstance(plan.load, OwnLoad):
        raise expected("a load of Tare's own: the lab decides when the last turn ends", "load")
    if "duration" in plan.load.model_fields_set:
        raise expected("turn and turns instead of a duration of the load", "load", "duration")
    if plan.turn < 2 * plan.load.slice:
        raise expected("at least two slices of the load (only whole slices count)", "turn")
    first = of_service(plan.conditions[0])
    for number, condition in enumerate(plan.conditions):
        if of_service(condition) != first:
            raise expected(
                "the same layers of the service in all conditions: there is one service, and only"
                " layers that cover the machine take turns",
                *("conditions", number),
            )
        names = [getattr(layer, "name", layer.type) for layer in whole_machine(condition)]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise expected(
                f'agents with different names, not twice "{twice}"', "conditions", number
            )
