# SPDX-License-Identifier: Apache-2.0
"""Jaeger's collector, ingester and query service of one run."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tare.lab.environments.ports import free_port
from tare.lab.pipeline.components import LOCAL, Component, Components, readiness
from tare.lab.pipeline.elasticsearch_node import ElasticsearchNode
from tare.lab.pipeline.kafka_broker import KafkaBroker
from tare.lab.pipeline.programs import COLLECTOR, INGESTER, QUERY

# Without a sampler, they send their own spans to another port, and wait for that at their end.
_VARIABLES = {"OTEL_TRACES_SAMPLER": "always_off"}
_READY = readiness(http="/")
"""Of their port for administration."""


@dataclass(frozen=True)
class JaegerPrograms:
    """Starts the programs between the services of a run, a topic, and an index with its name."""

    components: Components
    broker: KafkaBroker
    node: ElasticsearchNode
    topic: str

    @property
    def group(self) -> str:
        """The group of consumers that the ingester joins."""
        return f"{self.topic}-ingester"

    def collector(self, address: str, queue: int, log: Path) -> tuple[Component, str]:
        """The program that services send spans to, and its URL. Raises RunError."""
        otlp = free_port(address)
        options = {
            "collector.otlp.http.host-port": f"{address}:{otlp}",
            "collector.otlp.grpc.host-port": _local(),
            "collector.http-server.host-port": _local(),
            "collector.grpc-server.host-port": _local(),
            "collector.queue-size": str(queue),
            "kafka.producer.brokers": self.broker.address,
            "kafka.producer.topic": self.topic,
            "kafka.producer.encoding": "protobuf",
        }
        return self._start(COLLECTOR, "kafka", options, log), f"http://{address}:{otlp}/v1/traces"

    def ingester(self, log: Path) -> Component:
        """The program that stores the messages of the topic. Raises RunError."""
        options = {
            "kafka.consumer.brokers": self.broker.address,
            "kafka.consumer.topic": self.topic,
            "kafka.consumer.group-id": self.group,
            "kafka.consumer.encoding": "protobuf",
            **self._of_elasticsearch(),
        }
        return self._start(INGESTER, "elasticsearch", options, log)

    def query(self, log: Path) -> Component:
        """The program that shows what is stored. Raises RunError."""
        options = {
            "query.http-server.host-port": _local(),
            "query.grpc-server.host-port": _local(),
            **self._of_elasticsearch(),
        }
        return self._start(QUERY, "elasticsearch", options, log)

    def _of_elasticsearch(self) -> dict[str, str]:
        return {
            "es.server-urls": self.node.url,
            "es.index-prefix": self.topic,
            "es.num-shards": "1",
            "es.num-replicas": "0",
        }

    def _start(
        self, program: str, storage: str, options: Mapping[str, str], log: Path
    ) -> Component:
        admin = free_port(LOCAL)
        options = {**options, "admin.http.host-port": f"{LOCAL}:{admin}"}
        return self.components.start(
            program,
            [
                self.components.file(program),
                *(f"--{name}={value}" for name, value in options.items()),
            ],
            name=f"{self.topic}-{program}",
            log=log,
            port=admin,
            ready=_READY,
            variables={**_VARIABLES, "SPAN_STORAGE_TYPE": storage},
        )


def _local() -> str:
    return f"{LOCAL}:{free_port(LOCAL)}"
