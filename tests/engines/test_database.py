# SPDX-License-Identifier: Apache-2.0
"""A table of a database may hold anything: DuckDB stands for the server here."""

import re
from pathlib import Path
from typing import Any

import ibis
import pytest
from tests.report.synthetic import Synthetic

from tare.errors import InputError
from tare.samples import read_result
from tare.samples.engines import Engine
from tare.samples.read import result_folders
from tare.verdict import judge

URL = "clickhouse://u:secret@host/d"
MADE = Synthetic(requests=400, blocks=4, effects={"plain": 0.0, "hook": 0.1}, invalid=())
OTHER = "SELECT * REPLACE (duration_ns * 2 AS duration_ns, 'other' AS experiment) FROM result"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return MADE.write(tmp_path_factory.mktemp("result") / "result")


@pytest.fixture
def server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Has the samples of the folder in the table `result`."""
    backend: Any = ibis.duckdb.connect()
    files = f"{folder}/samples/condition=*/block=*/run=*/samples.parquet"
    backend.raw_sql(
        f"CREATE TABLE result AS SELECT *, 'hook-nginx-20261121T204500-ab12' AS experiment"
        f" FROM read_parquet('{files}', hive_partitioning = true)"
    )
    # Ibis 12 asks DuckDB by a name that DuckDB 2 has not any more.
    monkeypatch.setattr(backend, "list_tables", lambda: ["result", "samples"])
    monkeypatch.setattr(result_folders, "open_engine", lambda url: Engine(url, backend))
    return backend


def test_other_experiments_of_a_table_are_not_this_one(folder: Path, server: Any) -> None:
    server.raw_sql(f"CREATE TABLE samples AS FROM result UNION ALL {OTHER}")
    assert judge(read_result(folder, URL)).to_json() == judge(read_result(folder)).to_json()
    server.raw_sql("DELETE FROM samples WHERE experiment <> 'other'")
    assert {run.reason for run in read_result(folder, URL).runs} == {
        "its requests are not in the result"
    }


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (f"SELECT * EXCLUDE experiment FROM (FROM result UNION ALL {OTHER})", "800"),
        ("FROM result UNION ALL FROM result", "800"),
        ("FROM result WHERE seq < 100", "100"),
    ],
)
def test_requests_that_were_not_measured_are_named(
    folder: Path, server: Any, rows: str, says: str
) -> None:
    server.raw_sql(f"CREATE TABLE samples AS {rows}")
    with pytest.raises(InputError, match=f"run 1 has 400 requests, and {says} in the table"):
        read_result(folder, URL)


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (
            "TABLE samples AS SELECT * EXCLUDE (condition, duration_ns) FROM result",
            "the table 'samples' has no column condition, duration_ns;",
        ),
        (
            "VIEW samples AS SELECT * REPLACE (error(ok::VARCHAR)::BIGINT AS seq) FROM result",
            "a table of the result cannot be read: Invalid Input Error: true",
        ),
        (
            "TABLE samples AS SELECT * REPLACE ([seq] AS seq) FROM result",
            "column seq is array<int64>, expected int64",
        ),
    ],
)
def test_what_an_engine_cannot_do_is_one_line(
    folder: Path, server: Any, table: str, says: str
) -> None:
    server.raw_sql(f"CREATE {table}")
    with pytest.raises(InputError, match=re.escape(says)) as raised:
        read_result(folder, URL)
    assert str(raised.value).startswith("--engine clickhouse://host/d: ")
    assert "\n" not in str(raised.value)
