# SPDX-License-Identifier: Apache-2.0
"""Engines by the names that people give them, and what Trino would be asked."""

import re
from pathlib import Path

import ibis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tare.errors import InputError
from tare.samples.engines import histogram, open_engine, spark


def test_a_result_is_read_by_its_folders(tmp_path: Path) -> None:
    """Names that look like numbers or patterns are names."""
    for run, condition in enumerate(("007", "a[b]*"), start=1):
        folder = tmp_path / "r?" / "samples" / f"condition={condition}" / "block=1" / f"run={run}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"duration_ns": [run]}), folder / "samples.parquet")
    engine = open_engine()
    table = engine.table(tmp_path / "r?", "samples")
    assert table is not None
    assert table.order_by("run").to_pyarrow().to_pylist() == [
        {"duration_ns": 1, "condition": "007", "block": 1, "run": 1},
        {"duration_ns": 2, "condition": "a[b]*", "block": 1, "run": 2},
    ]
    assert engine.table(tmp_path, "machine") is None


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("mysql://root@host/d", "expected one of duckdb, spark, clickhouse, trino"),
        ("", "expected one of duckdb"),
    ],
)
def test_engines_that_there_are_not(url: str, says: str) -> None:
    with pytest.raises(InputError, match=re.escape(says)):
        open_engine(url)


def test_spark_needs_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(InputError, match="needs Java"):
        spark.connect("spark")


@pytest.mark.parametrize("name", ["pyspark", "clickhouse_connect", "trino"])
def test_what_is_not_installed_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setitem(__import__("sys").modules, "pyspark.sql", None)
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/java")
    url = {"pyspark": "spark", "trino": "trino://u@h/c/s"}.get(name, "clickhouse://u:secret@h/d")
    with pytest.raises(InputError, match=r"pip install 'tare\[\w+\]'") as raised:
        open_engine(url)
    assert "secret" not in str(raised.value)


def test_trino_is_asked_for_counts_only() -> None:
    samples = ibis.table(
        {"run": "int32", "span": "string", "latency_ns": "int64", "ok": "boolean"}, name="samples"
    )
    query = str(ibis.to_sql(histogram(samples), dialect="trino"))
    assert re.search(r"GROUP BY\s+1,\s+2,\s+3\b", query)
    assert "BITWISE_RIGHT_SHIFT" in query
    assert query.count("samples") == 1
