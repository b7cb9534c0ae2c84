# SPDX-License-Identifier: Apache-2.0
"""A result's manifest.json: its model, and the only code that reads and writes it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)

from tare.atomic_files import replace
from tare.errors import InputError
from tare.untrusted import MEBIBYTE, explained, is_relative, read_json

NAME = "manifest.json"
MOST_BYTES = 256 * MEBIBYTE
MOST_PLACES = 1_000
"""Conditions of an experiment, counted in each environment."""
MOMENTARY = frozenset(
    ("pressure_cpu", "pressure_io", "pressure_memory", "steal_now", "steal_since_boot")
)
"""Readings of the machine that are another every moment."""


def _relative(path: str) -> str:
    if not is_relative(path):
        raise ValueError("a path in the result folder")
    return path


def _unlike_a_path(name: str) -> str:
    if "/" in name or "=" in name or not is_relative(name):
        raise ValueError("a name without / and =")
    return name


Label = Annotated[str, Field(max_length=200)]
Name = Annotated[Label, AfterValidator(_unlike_a_path)]
"""Of a condition: the name of a folder of samples has it."""
Number = Annotated[int, Field(ge=0, le=2**31 - 1)]
Nanoseconds = Annotated[int, Field(ge=0, le=2**63)]
Amount = Annotated[float, Field(ge=0, le=2.0**63)]
Share = Annotated[float, Field(ge=0, le=1)]
Compare = Literal["conditions", "environments"]
Answer = Literal["kept", "broken", "cannot tell"]
LONGEST_LINE = 1_000
BetweenZeroAndOne = Annotated[float, Field(gt=0, lt=1)]
Fact = str | int | float | bool | None
Facts = dict[str, Fact | list[Fact] | dict[str, Fact]]
"""What is shown and compared as it is."""


class Table(BaseModel):
    """A table of the manifest: null means the same as no key, and unknown keys stay."""

    model_config = ConfigDict(extra="allow", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, found: Any) -> Any:
        if isinstance(found, dict) and None in found.values():
            return {key: value for key, value in found.items() if value is not None}
        return found


class Recommendation(Table):
    """What one of the ten recommendations of Kahlhofer et al. was found to be, and by what."""

    number: Annotated[int, Field(ge=1, le=10)]
    answer: Answer
    evidence: Annotated[list[Annotated[str, Field(max_length=LONGEST_LINE)]], Field(max_length=20)]


Recommended = Annotated[list[Recommendation], Field(max_length=10)]


class Collected(Table):
    """The distinct spans of a run: which of those that Tare received a pipeline has stored."""

    received: Nanoseconds
    """By Tare's own receiver."""
    queued: Nanoseconds
    """Messages of Kafka."""
    stored: Nanoseconds
    """In Elasticsearch."""
    missing: Nanoseconds = 0
    """Received, but not stored."""
    additional: Nanoseconds = 0
    """Stored, but not received."""
    different: Nanoseconds = 0
    """Stored with another duration, in whole microseconds."""

    @property
    def is_whole(self) -> bool:
        """Whether the same spans with the same durations were stored."""
        return not (self.missing or self.additional or self.different)


class RunEntry(Table):
    """One run, valid or not."""

    run: Number
    block: Number
    environment: Label
    condition: Name
    valid: bool
    reason: str | None = None
    log_tail: list[str] = []
    logs: list[Annotated[str, AfterValidator(_relative)]] = []
    started_ns: Nanoseconds | None = None
    duration_ns: Nanoseconds | None = None
    requests: Nanoseconds | None = None
    errors: Nanoseconds | None = None
    endpoint: str | None = None
    cpu: dict[str, Amount | None] = {}
    """`service_ns_per_request`, `generator_ns_per_request`, and `agents_ns_per_second` of layers
    that cover the machine, as far as known."""
    recommendations: Recommended = []
    """Those that are read around the load of a run."""
    collected: Collected | None = None
    """What the pipeline of the plan stored of its spans."""


class Part(Table):
    """All conditions of one block in one environment, in the order of their start; or where
    environments are compared, all environments with one condition."""

    block: Number
    environment: Label = ""
    conditions: list[Name] = []
    condition: Label = ""
    environments: list[Label] = []

    @model_serializer(mode="wrap")
    def _as_compared(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in write(self).items() if value not in ("", [])}


class Condition(Table):
    """A condition that the author declared; its layers are those of the plan."""

    name: Name
    layers: list[Facts] = []


class DetectionLimit(Table):
    """A `samples.limits.Limit` as it was when the experiment began."""

    machine: str = ""
    service: str = ""
    environment: Label
    span: Label
    statistic: Label
    undetected_ns: Nanoseconds | Amount | None = None
    """None where false alarms hid the limit."""
    level_ns: Amount = 0.0
    blocks: Number = 0
    repetitions: Number = 0
    shares: dict[Annotated[str, Field(pattern=r"^\d{1,18}$")], Share]
    """Of repetitions that detected it, by delay in ns."""
    date: Label
    version: Label = ""


class Load(Table):
    """What Tare reads of the settings of the load."""

    type: Label = "http"
    rate: Annotated[float, Field(gt=0, le=2.0**63)] | None = None
    max_errors: Share = 0.01


def _with_checked_load(settings: Any) -> Any:
    Load.model_validate(settings)
    return settings


def _growing(looks: list[int]) -> list[int]:
    if looks != sorted({*looks}):
        raise ValueError("growing numbers of blocks")
    return looks


def _each_once(runs: list[RunEntry]) -> list[RunEntry]:
    known, compared = set[int](), set[tuple[int, str, str]]()
    for run in runs:
        if run.run in known:
            raise ValueError(f"every run once, not run {run.run} twice")
        known.add(run.run)
        place = run.block, run.environment, run.condition
        if run.valid and place in compared:
            raise ValueError(f"each condition once in a block, not again as run {run.run}")
        if run.valid:
            compared.add(place)
    if len({(run.environment, run.condition) for run in runs}) > MOST_PLACES:
        raise ValueError(f"at most {MOST_PLACES} conditions")
    return runs


class Manifest(Table):
    """A result: what was declared, where it ran, and what became of each run.

    Results of older versions lack keys, which have here the value that they meant then.
    """

    format: Literal[1] = 1
    experiment: str = ""
    name: str = ""
    kind: str = ""
    published: Label = ""
    """Whose numbers the report shows beside its own, as `tare.published.numbers` names them."""
    design: str = ""
    slice_ns: Nanoseconds | None = None
    turns: Facts = {}
    """Of an alternating design: how many of each condition in a block, and how long."""
    primary: Label = "p50"
    budget: BetweenZeroAndOne
    alpha: BetweenZeroAndOne = 0.05
    compare: Compare = "conditions"
    """What is compared with `baseline`: conditions, or environments."""
    plan_folder: str = ""
    """Where relative paths of the plan start, and what {plan} means; empty if it is not known."""
    baseline: Name
    control: Name | None = None
    conditions: Annotated[list[Condition], Field(max_length=MOST_PLACES)] = []
    environments: Annotated[list[Label], Field(max_length=MOST_PLACES)] = []
    machines: dict[Label, Label] = {}
    """What booted the guests of an environment, by its name: `kvm`, `tcg` or `uml`."""
    seed: Nanoseconds = 0
    blocks: Number = 0
    smoke: bool = False
    looks: Annotated[list[Annotated[Number, Field(gt=0)]], AfterValidator(_growing)] = []
    started: str = ""
    finished: str | None = None
    tare: str = ""
    order: list[Part] = []
    placement: Facts = {}
    load: Annotated[Facts, BeforeValidator(_with_checked_load)] = {}
    machine: Facts = {}
    fingerprints: dict[Label, dict[Label, Amount]] = {}
    """By environment: what a program pays for kernel, memory and arithmetic, measured inside."""
    recommendations: Recommended = []
    """Those that the plan alone decides."""
    limits: Annotated[list[DetectionLimit], Field(max_length=MOST_PLACES)] = []
    files: dict[str, str] = {}
    warnings: list[str] = []
    runs: Annotated[list[RunEntry], AfterValidator(_each_once)]
    cpu_from: str | None = None

    @model_validator(mode="after")
    def _with_names_of_what_is_compared(self) -> Manifest:
        if self.compare == "environments":
            for name in (*self.environments, *(run.environment for run in self.runs)):
                _unlike_a_path(name)
        return self

    def compared(self, run: RunEntry) -> str:
        """The name of a run in comparisons: its condition or its environment."""
        return run.condition if self.compare == "conditions" else run.environment

    def as_compared(self) -> Manifest:
        """The manifest with conditions as what is compared: if environments were compared, the
        names of environments and conditions are exchanged."""
        if self.compare == "conditions":
            return self
        conditions = [condition.name for condition in self.conditions]
        changed = {
            "conditions": [Condition(name=name) for name in self.environments],
            "environments": conditions,
            "limits": [],
            "runs": [
                run.model_copy(update={"environment": run.condition, "condition": run.environment})
                for run in self.runs
            ],
        }
        return self.model_copy(update=changed)

    @property
    def max_errors(self) -> float:
        """The share of failed requests from which on a run does not count."""
        return Load.model_validate(self.load).max_errors

    @property
    def host(self) -> str:
        """The ID of the machine; empty if it is not known."""
        return str(self.machine.get("machine", ""))

    @property
    def has_own_load(self) -> bool:
        """Whether a load generator of Tare's sent the requests."""
        return self.load.get("type") in ("http", "tare", "tcp")


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a result folder. Raises InputError where there is none of this format."""
    path = folder / NAME
    try:
        return Manifest.model_validate(read_json(path, MOST_BYTES))
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{path}: no such file; give a result folder of 'tare run'") from None
    except ValidationError as error:
        raise InputError(f"{path}: {explained(error)}; it is not a result of 'tare run'") from error
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{path}: cannot be read: {why}") from error


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replaces the manifest of a result folder. Raises OSError with the name of the file."""
    replace(folder / NAME, json.dumps(manifest.model_dump(), indent=2) + "\n")
