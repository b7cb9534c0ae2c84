# SPDX-License-Identifier: Apache-2.0
"""The plan's table for `tare calibrate`: how its service is made slower by a known time."""

from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)

from tare.plan.schema.values import Name, Variables, duration_ns, expected, variable

MICROSECOND = 1000


def whole_microseconds_ns(value: Any) -> int:
    """Nanoseconds of a duration that is a whole number of microseconds; `0` needs no unit."""
    duration = 0 if value in (0, "0") and value is not False else duration_ns(value)
    if duration % MICROSECOND:
        raise expected("whole microseconds")
    return duration


Microseconds = Annotated[
    int,
    BeforeValidator(whole_microseconds_ns, json_schema_input_type=str | Literal[0]),
]


class Calibration(BaseModel):
    """A busy-wait that the service offers, and how its detection limit is measured."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    variable: Annotated[str, AfterValidator(variable)]
    """Of the service's environment: for how many microseconds each request keeps the CPU busy."""
    delays: list[Microseconds] = [us * MICROSECOND for us in (0, 50, 100, 200, 300, 400, 500)]
    """Added to each request, in ns."""
    requests: dict[Name, Microseconds] = {}
    """Requests of different lengths: name -> busy-wait in ns before anything is added.

    Without them there is one kind, with the busy-wait that the service's own environment says.
    """
    variables: dict[Name, Variables] = {}
    """What else of the service's environment makes a kind of requests: name -> variables."""
    repetitions: int = Field(10, ge=1, le=10_000)
    """Experiments of the plan's number of blocks, in each of which a delay is detected or not."""

    @field_validator("delays")
    @classmethod
    def _in_order(cls, delays: list[int]) -> list[int]:
        if not any(delays):
            raise expected("a delay above zero")
        return sorted({0, *delays})

    @model_validator(mode="after")
    def _of_requests(self) -> Self:
        for name, variables in self.variables.items():
            if name not in self.requests:
                known = ", ".join(self.requests) or "which are none"
                raise expected(f"one of requests: {known}", "variables", name)
            if self.variable in variables:
                wanted = f"other variables than {self.variable}, which has the busy-wait"
                raise expected(wanted, "variables", name)
        return self
