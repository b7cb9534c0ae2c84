# SPDX-License-Identifier: Apache-2.0
"""Messages of many flows in the table of samples, and the server of several addresses."""

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.in_process import tare
from tests.load.conftest import TARE_LOAD
from tests.waiting import SECONDS

HOST = "127.0.0.1"


@contextmanager
def echoing(*options: str, count: int, served: str = "all") -> Iterator[list[str]]:
    """The addresses of a server that sends messages back."""
    command = [TARE_LOAD, "serve", served, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            lines = [process.stdout.readline().split() for _ in range(count)]
            yield [line[-1] for line in lines]
        finally:
            process.kill()


def load(*words: str) -> dict[str, Any]:
    command = [TARE_LOAD, *words, "--json"]
    printed = subprocess.check_output(command, text=True, timeout=SECONDS)
    return dict(json.loads(printed))


def schema() -> dict[str, str]:
    """Type by column of the samples that the load generator writes."""
    printed = json.loads(subprocess.check_output([TARE_LOAD, "schema", "--json"]))
    (samples,) = [table for table in printed["tables"] if table["name"] == "samples"]
    return {column["name"]: column["type"] for column in samples["columns"]}


@pytest.mark.parametrize(
    "words", [("udp",), ("connect", "udp"), ("connect", "tcp")], ids=["udp", "connect udp", "tcp"]
)
@pytest.mark.parametrize("flavor", ["ephemeral", "persistent"])
def test_messages_are_rows_of_the_table_of_samples(
    tmp_path: Path, words: tuple[str, ...], flavor: str
) -> None:
    file = tmp_path / "samples.arrow"
    options = ["--flavor", flavor, "--rate", "100", "--duration", "200ms", "--out", str(file)]
    options += ["--connections", "2"] if flavor == "persistent" else []
    listen = f"{HOST}:0,{HOST}:0"
    served = words[-1]
    with echoing("--listen", listen, served=served, count=2) as addresses:
        summary = load(*words, *addresses, *options, "--message-bytes", "80")
    with pa.ipc.open_stream(file) as stream:
        table = stream.read_all()
    types = {
        "category": pa.dictionary(pa.int32(), pa.utf8()),
        "int32": pa.int32(),
        "int64": pa.int64(),
        "bool": pa.bool_(),
    }
    expected = {name: types[kind] for name, kind in schema().items()}
    assert dict(zip(table.column_names, table.schema.types, strict=True)) == expected
    rows = table.to_pylist()
    counts = Counter(row["condition"] for row in rows)
    assert counts == {target["name"]: target["requests"] for target in summary["targets"]}
    assert set(counts) == set(addresses)
    for address in addresses:
        of_server = [row["seq"] for row in rows if row["condition"] == address]
        assert sorted(of_server) == list(range(len(of_server)))
    for row in rows:
        assert (row["ok"], row["error"], row["bytes"]) == (True, None, 80)
        assert row["intended_ns"] <= row["start_ns"]
        assert row["duration_ns"] > 0


def test_datagrams_without_an_answer_are_rows_with_an_error(tmp_path: Path) -> None:
    file = tmp_path / "samples.arrow"
    options = ["--rate", "50", "--duration", "100ms", "--timeout", "1s", "--out", str(file)]
    with echoing("--listen", f"{HOST}:0", served="tcp", count=1) as (address,):
        # No socket has this port of UDP.
        command = [TARE_LOAD, "udp", address, *options, "--json"]
        done = subprocess.run(command, capture_output=True, check=False, timeout=SECONDS)
    assert done.returncode == 1
    with pa.ipc.open_stream(file) as stream:
        rows = stream.read_all().to_pylist()
    assert {(row["ok"], row["error"]) for row in rows} == {(False, "connect")}


def test_recordings_of_datagrams_are_compared(tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.arrow" for name in ("before", "after")]
    with echoing("--listen", f"{HOST}:0", served="udp", count=1) as (address,):
        for file in files:
            load("udp", address, "--rate", "500", "--duration", "400ms", "--out", str(file))
    done = tare("compare", "--baseline", f"a={files[0]}", f"b={files[1]}", "--json")
    assert done.returncode == 0, done.stderr
    (primary,) = [one for one in json.loads(done.stdout)["comparisons"] if one["metric"] == "p50"]
    assert (primary["baseline"], primary["condition"]) == ("a", "b")
    assert primary["runs"] == {"baseline": 1, "condition": 1}


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_a_server_listens_on_the_addresses_of_a_file_with_several_threads(
    tmp_path: Path, protocol: str
) -> None:
    file = tmp_path / "addresses"
    file.write_text(f"{HOST}:0 127.0.0.2:0\n127.0.0.3:0\n")
    options = ["--listen-addrs-file", str(file), "--threads", "3"]
    flows = ["--flavor", "persistent", "--connections", "4", "--rate", "25"]
    with echoing(*options, served=protocol, count=3) as addresses:
        assert [address.split(":")[0] for address in addresses] == [
            HOST,
            "127.0.0.2",
            "127.0.0.3",
        ]
        (tmp_path / "servers").write_text("\n".join(addresses))
        words = ["connect", protocol, "--addrs-file", str(tmp_path / "servers"), *flows]
        found = load(*words, "--duration", "400ms")["targets"]
    assert [target["name"] for target in found] == addresses
    # Each of four connections sends at least its first message.
    assert all(target["requests"] >= 4 for target in found)
    assert all(target["errors"] == 0 for target in found)


def test_results_of_several_servers_of_a_host_are_added_up() -> None:
    options = ["--rate", "50", "--duration", "200ms", "--show-only-results", "--jsonlines"]
    with echoing("--listen", f"{HOST}:0,{HOST}:0,127.0.0.2:0", served="udp", count=3) as addresses:
        command = [TARE_LOAD, "udp", *addresses, *options, "--merge-results-each-host"]
        printed = subprocess.check_output(command, text=True, timeout=SECONDS)
    totals = [json.loads(line) for line in printed.splitlines()]
    assert {total["peer"]: total["count"] for total in totals} == {HOST: 20, "127.0.0.2": 10}
    assert all(total["total"] and not total["errors"] for total in totals)
