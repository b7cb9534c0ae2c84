# SPDX-License-Identifier: Apache-2.0
"""The key `placement`: on which CPUs the service and the load generator run."""

import re
from collections.abc import Iterable
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from tare.plan.schema.values import expected

Rule = Literal["same-core", "different-cores", "free"]
RULES = get_args(Rule)
LARGEST = 8_191
"""Linux has at most 8,192 CPUs."""
_LIST = r"\d+(-\d+)?(,\d+(-\d+)?)*"
_CpuList = Annotated[str, Field(pattern=f"^{_LIST}$", examples=["2-3", "0,4"])]


class CpuLists(BaseModel):
    """The CPUs of each, as taskset takes them."""

    model_config = ConfigDict(extra="forbid")

    service: _CpuList
    generator: _CpuList


def placement(value: Any) -> Any:
    """A rule, or the CPU numbers of `service` and `generator`, ascending."""
    if value in RULES:
        return value
    if isinstance(value, dict) and value.keys() == CpuLists.model_fields.keys():
        return {who: _cpus(cpus, who) for who, cpus in value.items()}
    rules = ", ".join(f'"{rule}"' for rule in RULES)
    raise expected(f'{rules}, or the CPUs of both: {{ service = "2-3", generator = "1" }}')


def _cpus(value: Any, who: str) -> list[int]:
    if isinstance(value, str) and re.fullmatch(_LIST, value):
        ranges = [[int(number) for number in part.split("-")] for part in value.split(",")]
        if all(first[0] <= first[-1] <= LARGEST for first in ranges):
            return sorted({cpu for part in ranges for cpu in range(part[0], part[-1] + 1)})
    raise expected('CPU numbers such as "2-3" or "0,4"', who)


def cpu_list(cpus: Iterable[int]) -> str:
    """CPU numbers as taskset takes them: `0-3,8`."""
    parts: list[list[int]] = []
    for cpu in sorted(cpus):
        if parts and cpu == parts[-1][-1] + 1:
            parts[-1] = [parts[-1][0], cpu]
        else:
            parts.append([cpu])
    return ",".join("-".join(map(str, part)) for part in parts)


Placement = Annotated[
    Any, BeforeValidator(placement, json_schema_input_type=Rule | CpuLists | None)
]
