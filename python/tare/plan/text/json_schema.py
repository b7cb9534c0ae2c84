# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema of plans, for editors."""

from typing import Any

from tare.plan.schema.plan import Plan
from tare.plan.schema.values import DURATION, UNITS_NS
from tare.plan.text.compose import KEY, OMIT
from tare.plan.text.parser import EXTENDS

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def plan_schema() -> dict[str, Any]:
    """The schema of what an author writes: durations and shares are texts, not nanoseconds."""
    schema = Plan.model_json_schema()
    for table in (schema, *schema["$defs"].values()):
        for key in table.get("properties", {}).values():
            _write_default(key)
    schema["properties"][EXTENDS] = {
        "type": "string",
        "description": "A plan in the same folder, which has all other keys.",
    }
    _add_compose(schema["$defs"]["Service"])
    # What such a plan does not have may be in the other plan.
    alone = {"if": {"not": {"required": [EXTENDS]}}, "then": {"required": schema["required"]}}
    return {"$schema": DIALECT, **schema, "required": ["name"], **alone}


def _add_compose(service: dict[str, Any]) -> None:
    service["properties"] |= {
        KEY: {"type": "string", "description": "A Compose file; `name` is the service with load."},
        OMIT: {
            "type": "array",
            "items": {"type": "string"},
            "description": "Services of the Compose file that do not run.",
        },
    }
    service["dependentRequired"] = {KEY: ["name"], OMIT: [KEY]}


def _write_default(key: dict[str, Any]) -> None:
    """Writes the default as an author would, or leaves out a default that is a whole table."""
    default = key.get("default")
    if key.pop("x-tare", None) == DURATION and isinstance(default, int):
        key["default"] = duration_text(default)
    elif default is None or isinstance(default, dict | list):
        key.pop("default", None)


def duration_text(nanoseconds: int) -> str:
    """`5ms` for 5,000,000: the largest unit in which it is a whole number."""
    for unit, factor in reversed(UNITS_NS.items()):
        if nanoseconds and nanoseconds % factor == 0 and unit != "µs":
            return f"{nanoseconds // factor}{unit}"
    return f"{nanoseconds}s"
