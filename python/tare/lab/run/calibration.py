# SPDX-License-Identifier: Apache-2.0
"""From a plan to the experiments of its calibration: the baseline, slower by known times."""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import tomli_w
from pydantic import TypeAdapter

from tare.atomic_files import replace
from tare.errors import InputError
from tare.plan import Plan, expected, parse, refused
from tare.plan.schema.calibration import MICROSECOND, Calibration
from tare.untrusted import MEBIBYTE, read_bytes

ONE_REQUEST = "request"
BEGUN = "begun.json"


@dataclass(frozen=True)
class Extent:
    """How much a calibration measures."""

    delays: list[int]
    """In ns, 0 among them."""
    repetitions: int
    blocks: int
    """Of one repetition."""

    @classmethod
    def begun(cls, folder: Path) -> "Extent":
        """Of a folder that is to be finished. Raises InputError where none was begun there."""
        path = folder / BEGUN
        try:
            return TypeAdapter(cls).validate_json(read_bytes(path, MEBIBYTE), strict=True)
        except (OSError, ValueError) as error:
            why = (
                error.strerror
                if isinstance(error, OSError)
                else "is not the calibration.json of tare calibrate"
            )
            raise InputError(f"{path}: {why}; there is nothing to resume") from error

    def begin(self, folder: Path) -> None:
        """Writes it into a new folder. Raises InputError where that holds anything already."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if any(folder.iterdir()):
                raise InputError(
                    f"{folder}: is not empty; choose another folder with --out, or continue with"
                    " --resume"
                )
            replace(folder / BEGUN, json.dumps(asdict(self)) + "\n")
        except OSError as error:
            raise InputError(
                f"{error.filename}: {error.strerror}; choose another folder with --out"
            ) from error


@dataclass(frozen=True)
class Calibrated:
    """One request of a calibration: the experiment that is carried out, and what it stands for."""

    name: str
    plan: Plan
    steps: dict[int, str]
    """The condition of each delay in ns; at 0 it is the control, a second baseline."""
    service: str
    """The service as `service_text` writes it, with the busy-wait of this request."""


def offered(plan: Plan) -> Calibration:
    """The busy-wait of a plan's service. Raises InputError if the plan has none, or compares
    environments."""
    if plan.calibration is None:
        raise InputError(
            f"{plan.source[0]}: has no table [calibration]; add one with variable = NAME, the"
            " variable of the service that holds its busy-wait in microseconds"
        )
    if plan.compare == "environments":
        raise InputError(
            f"{plan.source[0]}: compares environments, and limits belong to conditions; remove"
            " compare from the plan"
        )
    return plan.calibration


def calibrations(plan: Plan, extent: Extent) -> list[Calibrated]:
    """An experiment for each request, with a condition for each delay above 0.

    It has the blocks of all repetitions. Raises InputError for a plan that offers no busy-wait.
    """
    offer = offered(plan)
    found = []
    requests = offer.requests or {ONE_REQUEST: _own_busy_wait(plan, offer.variable)}
    for name, busy_ns in requests.items():
        others = offer.variables.get(name, {})
        variables = {
            delay: {**others, offer.variable: _us(busy_ns + delay)} for delay in extent.delays
        }
        text = tomli_w.dumps(_data(plan, name, variables, extent.repetitions * extent.blocks))
        derived = parse(text, f"{plan.source[0]} ({name})", plan.folder)
        assert derived.control_name is not None
        steps = {
            delay: condition_name(delay) if delay else derived.control_name
            for delay in extent.delays
        }
        service = service_text(plan, variables[0] if offer.requests else {})
        found.append(Calibrated(name, derived, steps, service))
    return found


def condition_name(delay_ns: int) -> str:
    """What the condition of a delay is called."""
    return f"{delay_ns // MICROSECOND}us"


def service_text(plan: Plan, variables: Mapping[str, str] = MappingProxyType({})) -> str:
    """The service of a plan as one line: variables, command, and layers of the baseline.

    Where two plans give the same line, what was measured of one service holds for the other.
    """
    environment = {**plan.service.environment, **variables}
    words = [*(f"{key}={environment[key]}" for key in sorted(environment)), *plan.service.command]
    text = " ".join(words).replace("{plan}", str(plan.folder))
    layers = [
        layer.model_dump(mode="json", exclude_none=True) for layer in plan.baseline_condition.layers
    ]
    return " + ".join([text, *(json.dumps(layer, sort_keys=True) for layer in layers)])


def _data(
    plan: Plan, request: str, variables: Mapping[int, dict[str, str]], blocks: int
) -> dict[str, Any]:
    """The plan with the baseline at every delay for its conditions, as a file would hold it.

    `variables` of the service's environment make the delay that they stand by.
    """
    data = tomllib.loads(plan.text)
    del data["calibration"]
    baseline = plan.baseline_condition.name
    written = next(condition for condition in data["conditions"] if condition["name"] == baseline)
    conditions = [
        {
            **written,
            "name": condition_name(delay),
            "layers": [
                {"type": "env", "variables": variables[delay]},
                *written.get("layers", []),
            ],
        }
        for delay in sorted(variables)
    ]
    changed = {
        "name": f"{plan.name[: 63 - len(request)]}-{request}",
        "kind": "macro",
        "baseline": condition_name(0),
        "blocks": blocks,
        "control": True,
        "conditions": conditions,
    }
    return {**data, **changed}


def _own_busy_wait(plan: Plan, variable: str) -> int:
    """The busy-wait in ns that the service's own environment asks for."""
    text = plan.service.environment.get(variable, "0")
    if not (text.isascii() and text.isdigit()):
        error = expected("whole microseconds of busy-wait", "environment", variable)
        raise refused(plan, ("service",), error)
    return int(text) * MICROSECOND


def _us(duration_ns: int) -> str:
    return str(duration_ns // MICROSECOND)
