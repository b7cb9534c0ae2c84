# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pyarrow as pa
import pytest
from bench.spans import collectors
from bench.spans.collectors import Running

METRICS = """\
# TYPE jaeger_collector_spans_received_total counter
jaeger_collector_spans_received_total{debug="false",format="otlp",svc="order"} 900
jaeger_collector_spans_saved_by_svc_total{debug="false",result="err",svc="order"} 7
jaeger_collector_spans_saved_by_svc_total{debug="false",result="ok",svc="order"} 640
jaeger_collector_spans_saved_by_svc_total{debug="false",result="ok",svc="stock"} 1.5e+06
"""


def test_jaegers_saved_spans_of_all_services_are_added() -> None:
    assert collectors.saved_of(METRICS) == 1_500_640
    assert collectors.saved_of("") == 0


@pytest.mark.parametrize("part", [1, 2, 7, 8, 9, 1_000])
def test_spans_on_the_border_of_two_parts_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: int
) -> None:
    monkeypatch.setattr(collectors, "PART", part)
    run = Running(tmp_path)
    run.file.write_bytes(3 * b'{"spans":[{"spanId":"1"},{"parentSpanId":"1","spanId":"2"}]}\n')
    assert collectors.spans_in_json(run) == 6


def test_rows_of_all_batches_are_counted(tmp_path: Path) -> None:
    run = Running(tmp_path)
    batch = pa.record_batch({"span": ["a", "b"]})
    with pa.OSFile(str(run.file), "wb") as file, pa.ipc.new_stream(file, batch.schema) as stream:
        for _ in range(3):
            stream.write_batch(batch)
    assert collectors.rows(run) == 6
