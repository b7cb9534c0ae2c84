# SPDX-License-Identifier: Apache-2.0
"""Spark compares what `tare spans fetch` saved of topics of a real broker, as Parquet."""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests import in_process
from tests.peers.kafka_broker import Broker, Message, broker
from tests.peers.sent_spans import Sent, otlp, traces

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
RUNS, TRACES, PARTITIONS = 6, 300, 3
SLOWER = {"old": 1.0, "new": 1.3}


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with broker(tmp_path_factory.mktemp("kafka")) as running:
        yield running


def spans_of(condition: str, run: int) -> list[Sent]:
    """Payments take longer in the new condition."""
    first = TRACES * (RUNS * (condition == "new") + run)
    sent = traces(range(first + 1, first + TRACES + 1), time.time_ns() - 600 * 10**9, 10**6)
    return [
        replace(one, duration_ns=int(one.duration_ns * SLOWER[condition]))
        if one.service == "bank"
        else one
        for one in sent
    ]


def compared(result: Path, *options: str) -> dict[str, Any]:
    done = in_process.tare("compare", result, "--json", *options)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


def test_spark_compares_the_topics_that_were_fetched(kafka: Broker, tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="needs the group 'engines'")
    from pyspark.sql import SparkSession

    result, sent = tmp_path / "result", {}
    for run in range(RUNS):
        for condition in SLOWER:
            topic = f"{condition}-{run}"
            sent[topic] = spans_of(condition, run)
            kafka.create(topic, PARTITIONS)
            requests = [otlp(sent[topic][at : at + 40]) for at in range(0, len(sent[topic]), 40)]
            kafka.produce(topic, (Message(one, at % 3) for at, one in enumerate(requests)))
            into = ("--into", result, "--condition", condition)
            done = in_process.tare("spans", "fetch", kafka.source(topic), *into)
            assert (done.returncode, done.stderr) == (0, "")
            number = 2 * run + (condition == "new") + 1
            assert done.stdout.endswith(f"in {result}, run {number} ({condition})\n")
            file = f"samples/condition={condition}/block={run + 1}/run={number}/samples.parquet"
            table = pq.read_table(result / file, partitioning=None)
            assert sorted(table["duration_ns"].to_pylist()) == sorted(
                one.duration_ns for one in sent[topic]
            )
    by_spark = compared(result, "--engine", "spark:local[2]")
    session = SparkSession.getActiveSession()
    assert session
    session.stop()
    assert by_spark == compared(result)
    verdicts = {
        one["span"]: one["verdict"]
        for one in by_spark["comparisons"]
        if one["metric"] == "p50" and one["condition"] == "new"
    }
    assert verdicts["bank: POST /pay (server)"] == "slower"
    assert verdicts["shop: POST /pay (client)"] == "unchanged"


def test_a_folder_of_something_else_is_refused(kafka: Broker, tmp_path: Path) -> None:
    kafka.create("one")
    kafka.produce("one", [Message(otlp(spans_of("old", 0)))])
    (tmp_path / "file").touch()
    into = ("--into", tmp_path, "--condition", "old")
    done = in_process.tare("spans", "fetch", kafka.source("one"), *into)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"tare: {tmp_path}: is not empty")
