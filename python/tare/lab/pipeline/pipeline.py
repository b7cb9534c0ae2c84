# SPDX-License-Identifier: Apache-2.0
"""The pipeline of Vinken's thesis: Jaeger's collector, Kafka, Jaeger's ingester, Elasticsearch.

Kafka and Elasticsearch serve a whole experiment. Each run with traced services has a topic, an
index and programs of Jaeger of its own, so that its spans are no other run's.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tare.errors import InputError, TareError
from tare.lab.environments.environment import Environment
from tare.lab.environments.launch import RunError
from tare.lab.pipeline.comparison import compared
from tare.lab.pipeline.components import Component, Components
from tare.lab.pipeline.elasticsearch_node import ElasticsearchNode
from tare.lab.pipeline.jaeger_programs import JaegerPrograms
from tare.lab.pipeline.kafka_broker import KafkaBroker
from tare.lab.pipeline.programs import COLLECTOR, INGESTER, QUERY, programs
from tare.lab.processes.processes import Processes
from tare.plan.schema.collect import Collect
from tare.samples.manifest import Collected

if TYPE_CHECKING:
    import pyarrow as pa

POLL_S = 0.5
FORMAT = "jaeger-elasticsearch"
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Pipeline:
    """The parts that all runs of an experiment share."""

    settings: Collect
    components: Components
    broker: KafkaBroker
    node: ElasticsearchNode

    def open(
        self, environment: Environment, work: Path, new_log: Callable[[str], Path]
    ) -> Delivery:
        """The way of the spans of one run, from its environment. Raises RunError.

        `work` is a folder for the spans that are imported.
        """
        self.components.processes.wait(0)
        if broken := self.why_broken():
            raise RunError(f"pipeline: {broken}")
        topic = f"run{next(_numbers)}"
        delivery = Delivery(self, topic, work / "spans.json")
        try:
            delivery.start(environment, new_log)
        except BaseException:
            delivery.close()
            raise
        return delivery

    def why_broken(self) -> str | None:
        """Which part has ended, and how."""
        parts = (self.broker.component, self.node.component)
        return next((part.why_ended for part in parts if part.why_ended), None)


@contextmanager
def pipeline_of(
    settings: Collect, plan_folder: Path, processes: Processes, cpus: Sequence[int], logs: Path
) -> Iterator[Pipeline]:
    """Starts the shared parts; they are removed at the end. Raises RunError if one fails."""
    logs.mkdir(parents=True, exist_ok=True)
    components = Components(programs(settings, plan_folder), processes, cpus)
    broker = KafkaBroker(components, logs / "kafka.log", settings.memory)
    started = [broker.component]
    try:
        node = ElasticsearchNode(components, logs / "elasticsearch.log", settings.memory)
        started.append(node.component)
        yield Pipeline(settings, components, broker, node)
    finally:
        components.stop(started)


@dataclass
class Delivery:
    """The way of one run's spans: a topic, an index, and the programs of Jaeger."""

    pipeline: Pipeline
    topic: str
    """And the prefix of the index."""
    file: Path
    """Where imported spans are written."""
    endpoint: str = ""
    """The collector's address for traces."""
    _collector: Component | None = None
    _others: list[Component] = field(default_factory=list)
    _queued: int = 0

    def start(self, environment: Environment, new_log: Callable[[str], Path]) -> None:
        """Starts Jaeger's programs, the last of the way first. Raises RunError."""
        own, settings = self.pipeline, self.pipeline.settings
        jaeger = JaegerPrograms(own.components, own.broker, own.node, self.topic)
        own.broker.create(self.topic, settings.partitions, jaeger.group)
        self._others.append(jaeger.ingester(new_log(INGESTER)))
        self._others.append(jaeger.query(new_log(QUERY)))
        self._collector, self.endpoint = jaeger.collector(
            environment.host_address, settings.queue, new_log(COLLECTOR)
        )

    def finish(self) -> None:
        """Waits until all spans are stored, or no more arrive, and imports them.

        The services have ended. No span at all is no error. Raises RunError if a part of the
        pipeline has failed.
        """
        try:
            broken = self._why_broken()
            if self._collector is not None:
                # It ends when Kafka has all that it holds.
                self.pipeline.components.stop([self._collector])
                self._collector = None
            if not self.pipeline.why_broken():
                self._queued = self.pipeline.broker.messages(self.topic)
                self._wait_until_stored()
                broken = broken or self._why_broken()
                with suppress(InputError):  # Nothing was stored.
                    self.pipeline.node.save(self._index, self.file)
        except RunError:
            raise
        except TareError as error:
            raise RunError(f"pipeline: {error}") from error
        finally:
            self.close()
        if broken:
            raise RunError(f"pipeline: {broken}")

    def close(self) -> None:
        """Stops Jaeger's programs, and deletes topic and index."""
        left = [part for part in (self._collector, *self._others) if part is not None]
        self.pipeline.components.stop(left)
        self._collector = None
        self._others.clear()
        if not self.pipeline.why_broken():
            self.pipeline.node.delete(f"{self.topic}-")
            with suppress(TareError):  # All of Kafka is deleted later.
                self.pipeline.broker.delete(self.topic)

    def spans(self) -> pa.Table | None:
        """The spans that were imported, with columns of samples; None without any."""
        from tare.samples import read_load_output

        return read_load_output(self.file, FORMAT) if self.file.exists() else None

    def compared(self, received: pa.Table, stored: pa.Table) -> Collected:
        """How the imported spans differ from those that Tare's receiver got."""
        return compared(received, self._queued, stored)

    @property
    def _index(self) -> str:
        return f"{self.topic}-jaeger-span-*"

    def _wait_until_stored(self) -> None:
        limit = self.pipeline.settings.timeout / 1e9
        stored, since = -1, time.monotonic()
        while stored < self._queued and time.monotonic() < since + limit:
            now = self.pipeline.node.count(self._index)
            if now > stored:
                stored, since = now, time.monotonic()
            if self._why_broken():
                return
            self.pipeline.components.processes.wait(POLL_S)

    def _why_broken(self) -> str | None:
        self.pipeline.components.processes.wait(0)
        parts = [self._collector, *self._others]
        ended = [part.why_ended for part in parts if part is not None and part.why_ended]
        return self.pipeline.why_broken() or next(iter(ended), None)
