# SPDX-License-Identifier: Apache-2.0
"""A real broker of Kafka: one node, without ZooKeeper, with an empty store."""

import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.peers.programs import LOCAL, installed, running
from tests.waiting import SECONDS, wait_for

from tare.lab.environments.ports import free_port

CLUSTER = "dGFyZSB0ZXN0cyBvZiBrYQ"
CLIENT = {"bootstrap_timeout_ms": 1_000 * SECONDS, "reconnect_backoff_max_ms": 500}


@dataclass(frozen=True)
class Message:
    """A message, and its time in ms if the sender gives it one."""

    value: bytes
    partition: int = 0
    time_ms: int | None = None


@dataclass(frozen=True)
class Broker:
    """A running broker."""

    address: str
    process: "subprocess.Popen[bytes]"

    def source(self, topic: str) -> str:
        """The topic, as `tare spans fetch` takes it."""
        return f"kafka://{self.address}/{topic}"

    def create(self, topic: str, partitions: int = 1, compression: str = "producer") -> None:
        """Creates a topic. The broker compresses its messages anew if `compression` is a codec."""
        from kafka import KafkaAdminClient

        with KafkaAdminClient(bootstrap_servers=self.address, **CLIENT) as admin:
            options = {
                "num_partitions": partitions,
                "replication_factor": 1,
                "configs": {"compression.type": compression},
            }
            admin.create_topics({topic: options}, wait_for_metadata=True)

    def topics(self) -> set[str]:
        """The names of all topics."""
        from kafka import KafkaAdminClient

        with KafkaAdminClient(bootstrap_servers=self.address, **CLIENT) as admin:
            return set(admin.list_topics())

    @contextmanager
    def producer(self, **settings: Any) -> Iterator[Any]:
        """A client that sends messages."""
        from kafka import KafkaProducer

        with KafkaProducer(bootstrap_servers=self.address, **CLIENT, **settings) as producer:
            yield producer

    def produce(self, topic: str, messages: Iterable[Message], **settings: Any) -> None:
        """Sends messages, and waits until the broker has stored all of them."""
        with self.producer(**settings) as producer:
            pending = [
                producer.send(
                    topic, message.value, partition=message.partition, timestamp_ms=message.time_ms
                )
                for message in messages
            ]
            producer.flush()
            for future in pending:
                future.get(SECONDS)


@contextmanager
def broker(folder: Path) -> Iterator[Broker]:
    """A broker that is ready, with its store in `folder`."""
    program = installed("kafka")
    pytest.importorskip("kafka", reason="kafka-python is not installed")
    own, controller = free_port(LOCAL), free_port(LOCAL)
    settings = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "listeners": f"PLAINTEXT://{LOCAL}:{own},CONTROLLER://{LOCAL}:{controller}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": f"{LOCAL}:{controller}",
        "log.dirs": folder / "store",
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.replication.factor": 1,
    }
    file = folder / "server.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    prepare = ["format", "--config", str(file), "--cluster-id", CLUSTER, "--standalone"]
    subprocess.run(
        [program, "kafka.tools.StorageTool", *prepare], check=True, stdout=subprocess.DEVNULL
    )
    with running([program, "kafka.Kafka", file], folder / "broker.txt") as process:
        found = Broker(f"{LOCAL}:{own}", process)

        def can_create() -> bool:
            from kafka.errors import InvalidReplicationFactorError

            assert process.poll() is None, (folder / "broker.txt").read_text()
            try:
                found.create("ready")
            except InvalidReplicationFactorError:
                return False
            return True

        wait_for(can_create, "a broker of Kafka")
        yield found
