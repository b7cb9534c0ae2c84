# SPDX-License-Identifier: Apache-2.0
"""What the hook says of its work and its own cost: statistics and the table of costs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.hook_command.service import HOOK, Nginx, Start, exchange, request, rules
from tests.waiting import SECONDS, wait_for


def test_statistics_count_calls_bytes_and_time(nginx: Nginx, start: Start) -> None:
    (nginx.folder / "rules.toml").write_text(rules("needle", scope="http"))
    options = ["--rules", str(nginx.folder / "rules.toml"), "--json"]
    process = start(HOOK, *options, "--", *nginx.command)
    nginx.wait()
    sent = request(b"needle")
    with nginx.connect() as connection:
        for _ in range(10):
            exchange(connection, sent)
    process.terminate()
    stats = json.loads(process.communicate(timeout=SECONDS)[1].splitlines()[-1])
    recv = next(function for function in stats["functions"] if function["function"] == "recv")
    assert recv["matches"] == 10
    # What nginx was asked while the test waited for it is searched as well.
    assert recv["calls_socket"] > 10
    assert recv["bytes_searched"] >= 10 * len(sent)
    assert (
        0 < recv["own_time_ns"]["p50"] <= recv["own_time_ns"]["p99"] <= recv["own_time_ns"]["max"]
    )
    assert stats["programs"] == 1
    assert stats["rules"] == {"keywords": 1, "reloads": 0, "refused": 0}


def test_the_table_of_statistics_is_for_people(tmp_path: Path, start: Start) -> None:
    (tmp_path / "rules.toml").write_text(rules("x", action="block"))
    script = "import socket; a, b = socket.socketpair(); a.send(b'x'); b.recv(1)"
    options = ["--rules", str(tmp_path / "rules.toml"), "--stats"]
    process = start(HOOK, *options, "--", sys.executable, "-c", script)
    _, err = process.communicate(timeout=SECONDS)
    lines = err[err.index("tare-hook: calls by function") :].splitlines()
    assert lines[1].split()[:3] == ["function", "sockets", "other"]
    place = lines[1].replace("other files", "other").replace("searched B", "bytes").split()
    recv = next(line.split() for line in lines if line.startswith("recv "))
    assert recv[place.index("sockets")] == recv[place.index("blocked")] == "1"
    assert any(line.startswith("not searched: ") for line in lines)


def test_the_costs_have_the_declared_columns(tmp_path: Path, start: Start) -> None:
    import pyarrow.ipc

    costs = tmp_path / "costs.arrow"
    script = "import socket; a, b = socket.socketpair(); a.send(b'x'); b.recv(1)"
    assert start(HOOK, "--costs", str(costs), "--", sys.executable, "-c", script).wait(SECONDS) == 0
    table = pyarrow.ipc.open_stream(costs.read_bytes()).read_all()
    declared = json.loads(subprocess.check_output([HOOK, "schema", "--json"]))["tables"]
    columns = next(
        declaration["columns"] for declaration in declared if declaration["name"] == "costs"
    )
    assert table.column_names == [column["name"] for column in columns]
    rows = table.to_pylist()
    recv = [row for row in rows if row["function"] == "recv"]
    calls = sum(row["count"] for row in recv if row["metric"] == "calls_socket")
    bins = [row for row in recv if row["metric"] == "own_time"]
    assert calls == sum(row["count"] for row in bins) == 1
    assert all(row["low_ns"] <= row["high_ns"] for row in bins)
    assert all(row["low_ns"] is None for row in rows if row["metric"] != "own_time")
    assert {"events_lost", "stdio_sockets", "io_uring_setups"} <= {row["metric"] for row in rows}


def test_costs_are_a_whole_stream_after_a_kill(nginx: Nginx, start: Start) -> None:
    import pyarrow.ipc

    costs = nginx.folder / "costs.arrow"
    process = start(HOOK, "--costs", str(costs), "--", *nginx.command)
    nginx.wait()

    def requests() -> int:
        rows = pyarrow.ipc.open_stream(costs.read_bytes()).read_all().to_pylist()
        return sum(row["count"] for row in rows if row["metric"] == "calls_socket")

    wait_for(lambda: requests() > 0)
    process.kill()
    process.wait(SECONDS)
    assert requests() > 0


def test_costs_that_do_not_fit_leave_nothing_behind(tmp_path: Path, start: Start) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can make a disk that is full")
    script = f"""
mount -t tmpfs -o size=4k full {tmp_path}
head -c 4096 /dev/zero > {tmp_path}/filling
{HOOK} --costs {tmp_path}/costs -- true
echo $?; ls {tmp_path}
"""
    out, err = start(
        "unshare", "--mount", "sh", "-ec", script.replace("\necho", " ||\necho")
    ).communicate(timeout=SECONDS)
    assert "--costs" in err
    assert out.split() == ["2", "filling"]


def test_costs_replace_files_only(start: Start) -> None:
    process = start(HOOK, "--costs", "/dev/full", "--", "true")
    _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 2
    assert err.startswith("tare-hook: --costs /dev/full: not a regular file")
    assert Path("/dev/full").is_char_device()
