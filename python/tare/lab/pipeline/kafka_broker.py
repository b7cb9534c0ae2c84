# SPDX-License-Identifier: Apache-2.0
"""One broker of Kafka, with an empty store, on the loopback interface."""

import time
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path

from tare.errors import TareError
from tare.lab.environments.launch import RunError
from tare.lab.environments.ports import free_port
from tare.lab.pipeline.components import (
    LOCAL,
    START_S,
    Component,
    Components,
    new_folder,
    readiness,
)
from tare.lab.pipeline.programs import KAFKA_SERVER, KAFKA_STORAGE

SETTINGS = "server.properties"
_START = """\
"$0" format --config "$2" --cluster-id="$3" --standalone && exec "$1" "$2"
"""
_CLIENT = {"bootstrap_timeout_ms": 1_000 * START_S, "reconnect_backoff_max_ms": 500}


class KafkaBroker:
    """A broker that is ready."""

    def __init__(self, components: Components, log: Path, memory: int) -> None:
        """Starts it with so many MiB of heap. Raises RunError if it does not become ready."""
        own, controller = free_port(LOCAL), free_port(LOCAL)
        folder = new_folder("kafka", {SETTINGS: _settings(own, controller)})
        cluster = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        programs = (components.file(KAFKA_STORAGE), components.file(KAFKA_SERVER))
        self.address = f"{LOCAL}:{own}"
        self.component: Component = components.start(
            KAFKA_SERVER, ["sh", "-c", _START, *programs, str(folder / SETTINGS), cluster],
            name="kafka", log=log, port=own, folder=folder, ready=readiness(tcp=True),
            variables={"KAFKA_HEAP_OPTS": f"-Xms{memory}m -Xmx{memory}m"},
        )  # fmt: skip

    def create(self, topic: str, partitions: int, group: str) -> None:
        """Creates a topic, which consumers of the group will read from its beginning.

        Raises RunError if the broker does not do it in time.
        """
        from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
        from kafka.errors import KafkaError
        from kafka.structs import OffsetAndMetadata

        until = time.monotonic() + START_S
        try:
            with KafkaAdminClient(bootstrap_servers=self.address, **_CLIENT) as admin:
                options = {"num_partitions": partitions, "replication_factor": 1}
                while True:
                    try:
                        admin.create_topics({topic: options}, wait_for_metadata=True)
                        break
                    except KafkaError as error:
                        # It listens before it has joined its own cluster.
                        if not error.retriable and "Replication" not in type(error).__name__:
                            raise
                        if time.monotonic() > until:
                            raise
                        time.sleep(0.1)
            with KafkaConsumer(
                bootstrap_servers=self.address, group_id=group, enable_auto_commit=False, **_CLIENT
            ) as consumer:
                # Jaeger's ingester reads what comes after it has joined, unless the group has read.
                begin = OffsetAndMetadata(0, "", -1)
                consumer.commit({TopicPartition(topic, part): begin for part in range(partitions)})
        except (KafkaError, OSError) as error:
            raise RunError(f"kafka: topic {topic}: {' '.join(str(error).split())}") from error

    def messages(self, topic: str) -> int:
        """The number of messages that a topic got. Raises TareError."""
        from kafka import KafkaConsumer, TopicPartition
        from kafka.errors import KafkaError

        try:
            with KafkaConsumer(bootstrap_servers=self.address, **_CLIENT) as consumer:
                parts = consumer.partitions_for_topic(topic) or ()
                ends = consumer.end_offsets([TopicPartition(topic, part) for part in parts])
                return sum(ends.values())
        except KafkaError as error:
            raise TareError(f"kafka: topic {topic}: {' '.join(str(error).split())}") from error

    def delete(self, topic: str) -> None:
        """Deletes a topic. Raises TareError."""
        from kafka import KafkaAdminClient
        from kafka.errors import KafkaError

        try:
            with KafkaAdminClient(bootstrap_servers=self.address, **_CLIENT) as admin:
                admin.delete_topics([topic])
        except KafkaError as error:
            raise TareError(f"kafka: topic {topic}: {' '.join(str(error).split())}") from error


def _settings(own: int, controller: int) -> str:
    settings = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "listeners": f"PLAINTEXT://{LOCAL}:{own},CONTROLLER://{LOCAL}:{controller}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": f"{LOCAL}:{controller}",
        "log.dirs": "{dir}/store",
        "auto.create.topics.enable": "false",
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 1,
        "group.initial.rebalance.delay.ms": 0,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.replication.factor": 1,
    }
    return "".join(f"{key}={value}\n" for key, value in settings.items())
