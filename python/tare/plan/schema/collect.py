# SPDX-License-Identifier: Apache-2.0
"""The plan's table for spans that travel through a tracing backend into the result."""

from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field

from tare.plan.schema.layers import SpansLayer
from tare.plan.schema.values import SomeDuration, SystemText, expected

if TYPE_CHECKING:
    from tare.plan.schema.plan import Plan


class Collect(BaseModel):
    """The pipeline that stores the spans of traced services."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    pipeline: Literal["jaeger-kafka-elasticsearch"]
    programs: SystemText | None = None
    """The folder with the programs of the pipeline, relative to the plan; unless given, PATH."""
    queue: int = Field(100_000, ge=1, le=10_000_000)
    """Spans that Jaeger's collector holds before it drops further spans."""
    partitions: int = Field(1, ge=1, le=1_000)
    """Of the topic of a run."""
    memory: int = Field(512, ge=128, le=65_536)
    """Heap of Kafka, and of Elasticsearch, in MiB."""
    timeout: SomeDuration = 60 * 10**9
    """For the next span to be stored; then the spans that are still missing are lost."""


def check_collect(plan: "Plan") -> None:
    """Raises Pydantic's error for a plan whose spans cannot travel through the pipeline."""
    if plan.collect is None:
        return
    layers = [layer for condition in plan.conditions for layer in condition.layers]
    if not any(isinstance(layer, SpansLayer) for layer in layers):
        raise expected("a layer spans in some condition: without it there are no spans", "collect")
    if plan.design_used == "alternating":
        raise expected('design = "blocks" or "interleaved" with collect', "design")
    for number, environment in enumerate(plan.environments):
        if environment.has_generator:
            wanted = f"no environment of type {environment.type} with collect"
            raise expected(wanted, "environments", number)
