# SPDX-License-Identifier: Apache-2.0
"""Spark on two executors and ClickHouse in this process say of samples what DuckDB says."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bench.scale.data import AT, experiment_of, write
from tests.report.synthetic import Synthetic

from tare.errors import InputError
from tare.lab.environments.ports import free_port
from tare.samples import read_result
from tare.samples.engines import (
    Description,
    Engine,
    describe,
    describe_histogram,
    describing,
    histogram,
    open_engine,
)
from tare.samples.engines.histogram import merged
from tare.samples.read import result_folders
from tare.samples.sql.engine import connect
from tare.verdict import judge

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]
REQUESTS = 10_000_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fifth of the requests are ties."""
    found = tmp_path_factory.mktemp("samples")
    write(found, REQUESTS)
    return found


@pytest.fixture(scope="module")
def by_duckdb(folder: Path) -> tuple[Description, Any]:
    samples = connect().read_parquet(f"{folder}/*.parquet").rename(latency_ns="duration_ns")
    return describe(samples, AT), merged(histogram(samples).to_pyarrow())


@pytest.fixture
def spark(folder: Path) -> Iterator[Any]:
    pytest.importorskip("pyspark", reason="needs the group 'engines'")
    backend = open_engine("spark:local-cluster[2,1,1024]").backend
    assert backend._session.sparkContext.master == "local-cluster[2,1,1024]"
    with pytest.raises(InputError, match=r"runs on local-cluster\[2,1,1024\] in this process"):
        open_engine("spark:local[2]")
    yield backend.read_parquet(str(folder)).rename(latency_ns="duration_ns")
    backend._session.stop()


@pytest.fixture
def clickhouse(folder: Path) -> Any:
    pytest.importorskip("chdb", reason="needs the group 'engines'")
    import clickhouse_connect
    import ibis

    client = clickhouse_connect.get_client(interface="chdb")
    table = ibis.clickhouse.from_connection(client).sql(
        f"SELECT * FROM file('{folder}/*.parquet', Parquet)"
    )
    return table.rename(latency_ns="duration_ns")


@pytest.mark.parametrize("engine", ["spark", "clickhouse"])
def test_engines_agree(
    engine: str,
    by_duckdb: tuple[Description, Any],
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    samples = request.getfixturevalue(engine)
    collected = []
    kept = type(samples).to_pyarrow

    def counted(table: Any, **options: Any) -> Any:
        found = kept(table, **options)
        collected.append(found.num_rows)
        return found

    monkeypatch.setattr(type(samples), "to_pyarrow", counted)
    bins = merged(histogram(samples).to_pyarrow())
    with monkeypatch.context() as few:
        few.setattr(describing, "EXACT_ROWS", {"duckdb": 9 * REQUESTS})
        assert not describe(samples, AT).exact
    assert max(collected) < REQUESTS / 100
    exact, of_duckdb = by_duckdb
    assert bins.equals(of_duckdb)
    found = describe(samples, AT)
    assert found.exact
    # Nearly every latency is another.
    assert REQUESTS / 100 < max(collected) < REQUESTS
    assert found.groups == exact.groups
    for span, apart in found.distances.items():
        assert apart.runs == exact.distances[span].runs
        for kind, of_kind in exact.distances[span].of.items():
            assert apart.of[kind] == pytest.approx(of_kind, rel=1e-12)
    words = _words(found)
    assert words == _words(exact)
    assert words["p50"][0] == "slower"
    assert {metric: word for metric, (word, _) in words.items()} == {
        metric: word for metric, (word, _) in _words(describe_histogram(bins, AT)).items()
    }


def _words(description: Description) -> dict[str, tuple[str, str]]:
    """The verdict and its reason, by metric."""
    judged = judge(experiment_of(description))
    return {
        comparison.metric: (comparison.verdict, comparison.reason)
        for comparison in judged.comparisons
    }


def test_a_table_of_a_database_is_named(clickhouse: Any) -> None:
    backend = clickhouse.get_backend()
    columns = "condition Int8, block Int64, run Int64, start_ns Int64, duration_ns Int64"
    backend.raw_sql(f"CREATE TABLE named ({columns}) ENGINE = Memory")
    backend.raw_sql("INSERT INTO named VALUES (7, 1, 2, 4, 3)")
    engine = Engine("clickhouse://host/d#named", backend)
    table = engine.table(Path("nowhere"), "samples")
    assert table is not None
    assert table.to_pyarrow().to_pylist() == [
        {"condition": "7", "block": 1, "run": 2, "start_ns": 4, "duration_ns": 3}
    ]
    with pytest.raises(InputError, match="no table 'samples'"):
        Engine("clickhouse://host/d", backend).table(Path("nowhere"), "samples")


@pytest.mark.parametrize(
    "url", ["clickhouse://u:secret@127.0.0.1:{}/d", "trino://u@127.0.0.1:{}/c/s"]
)
def test_what_does_not_answer_is_named(url: str) -> None:
    pytest.importorskip("trino", reason="needs the group 'engines'")
    here = url.format(free_port("127.0.0.1"))
    with pytest.raises(InputError, match="no answer: ") as raised:
        open_engine(here).table(Path("nowhere"), "samples")
    assert "secret" not in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With failed runs, slices left out, and a warm-up to be looked for."""
    return Synthetic(requests=2_000).write(tmp_path_factory.mktemp("result") / "result")


def test_a_verdict_is_the_same_whoever_counts(
    result: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("chdb", reason="needs the group 'engines'")
    pytest.importorskip("pyspark", reason="needs the group 'engines'")
    import clickhouse_connect
    import ibis

    expected = judge(read_result(result)).to_json()
    by_spark = judge(read_result(result, "spark:local-cluster[2,1,1024]")).to_json()
    assert by_spark == expected
    open_engine("spark").backend._session.stop()

    client = clickhouse_connect.get_client(interface="chdb")
    backend = ibis.clickhouse.from_connection(client)
    files = f"{result}/samples/condition=*/block=*/run=*/samples.parquet"
    backend.raw_sql(
        f"CREATE TABLE of_result ENGINE = Memory AS SELECT * FROM file('{files}', Parquet)"
        " SETTINGS use_hive_partitioning = 1"
    )
    url = "clickhouse://here/default#of_result"
    monkeypatch.setattr(result_folders, "open_engine", lambda url: Engine(url, backend))
    assert judge(read_result(result, url)).to_json() == expected
