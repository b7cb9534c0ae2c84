# SPDX-License-Identifier: Apache-2.0
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from tare.lab.environments.launch import Launch, RunError
from tare.lab.layers.spans import in_slices, incomplete, of_load, put
from tare.plan.schema.layers import SpansLayer


def test_traces_of_the_load_are_kept_whole() -> None:
    spans = pa.table({
        "trace_id": ["before", "before", "in", "in", "in", "after"],
        "start_ns": [90, 110, 100, 120, 210, 201],
    })  # fmt: skip
    assert of_load(spans, 100, 200)["trace_id"].to_pylist() == ["in"] * 3


def test_spans_are_in_the_slice_in_which_their_trace_began() -> None:
    requests = pa.table({
        "start_ns": pa.array([300, 100, 150, None]),
        "slice": pa.array([7, 2, 2, None], pa.int32()),
    })  # fmt: skip
    spans = pa.table({
        "trace_id": ["early", "two", "two", "seven", "edge"],
        "start_ns": [99, 299, 310, 301, 300],
    })  # fmt: skip
    found = in_slices(spans, requests)
    assert found["slice"].to_pylist() == [2, 2, 2, 7, 7]
    assert found["slice"].type == pa.int32()


def test_a_load_without_slices_gives_spans_none() -> None:
    spans = pa.table({"trace_id": ["a"], "start_ns": [1]})
    assert in_slices(spans, pa.table({"start_ns": [1]})) == spans


def test_no_spans() -> None:
    none = pa.table({"trace_id": pa.array([], "string"), "start_ns": pa.array([], "int64")})
    assert of_load(none, 100, 200).num_rows == 0


@pytest.mark.parametrize(
    ("traces", "sample", "is_incomplete"),
    [(100, None, False), (99, None, False), (98, None, True), (98, 1.0, True), (1, 0.01, False)],
)
def test_missing_traces_are_reported(
    traces: int, sample: float | None, is_incomplete: bool
) -> None:
    spans = pa.table({"trace_id": [str(number // 2) for number in range(2 * traces)]})
    layer = SpansLayer(type="spans", sample=sample)
    why = incomplete([layer], spans, 100)
    assert (why is not None) == is_incomplete
    assert why is None or why.startswith(f"{traces} traces of 100 requests: ")


def test_without_the_layer_nothing_is_missing() -> None:
    assert incomplete([], None, 100) is None


def launch_in(folder: Path, traces_to: str | None, **variables: str) -> Launch:
    environment = cast(Any, SimpleNamespace())
    return Launch(environment, folder, folder, ["serve"], variables, 1, 1, traces_to=traces_to)


def test_with_a_pipeline_a_service_sends_to_two_receivers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OTEL_CONFIG_FILE", raising=False)
    launch = launch_in(tmp_path, "http://10.0.0.1:5/v1/traces")
    put(SpansLayer(type="spans", sample=0.5), launch)
    file = Path(launch.variables["OTEL_CONFIG_FILE"])
    assert file.parent == tmp_path
    text = file.read_text()
    named = {line.split("${")[1].split("}")[0] for line in text.splitlines() if "endpoint:" in line}
    assert named == {"OTEL_EXPORTER_OTLP_ENDPOINT", "TARE_COLLECTOR_ENDPOINT"}
    assert launch.variables["TARE_COLLECTOR_ENDPOINT"] == "http://10.0.0.1:5/v1/traces"
    assert launch.variables["OTEL_TRACES_SAMPLER_ARG"] == "0.5"


def test_a_configuration_file_of_the_service_is_not_replaced(tmp_path: Path) -> None:
    launch = launch_in(tmp_path, "http://10.0.0.1:5/v1/traces", OTEL_CONFIG_FILE="mine.yaml")
    with pytest.raises(RunError, match="OTEL_CONFIG_FILE is set"):
        put(SpansLayer(type="spans"), launch)


def test_without_a_pipeline_there_is_one_receiver(tmp_path: Path) -> None:
    launch = launch_in(tmp_path, None)
    put(SpansLayer(type="spans"), launch)
    assert [*launch.variables] == ["OTEL_SERVICE_NAME"]
