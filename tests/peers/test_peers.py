# SPDX-License-Identifier: Apache-2.0
"""Every importer on what the tool itself writes here: setup/install-peers brings the tools."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread

import pyarrow as pa
import pytest

from tare.samples import ImportOptions, read_files, read_load_output
from tare.samples.formats import detect

HERE = Path(__file__).parent
TOOLS = HERE.parents[1] / "target" / "peers" / "bin"
SENT = 60
SLOWNESS = 0.002
K6 = """
import http from 'k6/http';
export const options = { vus: 2, iterations: %d };
export default function () { http.get('%s'); }
"""
pytestmark = pytest.mark.integration


class Server(ThreadingHTTPServer):
    """Answers in no less than SLOWNESS; every fourth answer is 500."""

    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked = 0
        self.lock = Lock()
        self.url = f"http://127.0.0.1:{self.server_port}/"


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    server: Server

    def setup(self) -> None:
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def do_GET(self) -> None:
        time.sleep(SLOWNESS)
        with self.server.lock:
            self.server.asked += 1
            status = 500 if self.server.asked % 4 == 0 else 200
        self.send_response(status)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as serving:
        thread = Thread(target=serving.serve_forever, daemon=True)
        thread.start()
        yield serving
        serving.shutdown()
        thread.join()


def run(
    name: str,
    arguments: Sequence[str | Path],
    folder: Path,
    codes: tuple[int, ...] = (0,),
    **more: str,
) -> str:
    """Runs a tool to its end in a folder; what it printed."""
    tool = TOOLS / name
    if not os.access(tool, os.X_OK):
        pytest.skip(f"{name} is not in target/peers/bin: setup/install-peers {name}")
    done = subprocess.run(
        [tool, *arguments], cwd=folder, env=os.environ | more, text=True, capture_output=True,
        check=False, timeout=100,
    )  # fmt: skip
    assert done.returncode in codes, done.stdout + done.stderr
    return done.stdout


def check(
    path: Path, form: str, server: Server, since: float | None, options: ImportOptions | None = None
) -> pa.Table:
    """As many requests as the server saw, as many failures, no time below the server's own."""
    assert detect(path) == form
    found = read_load_output(path, options=options or ImportOptions())
    assert server.asked == found.num_rows == SENT
    assert found["ok"].to_pylist().count(False) == SENT // 4
    durations = found["duration_ns"].to_pylist()
    # Some round to 0.1 ms or 1 ms.
    assert min(durations) >= SLOWNESS * 0.95e9
    assert max(durations) < 60e9
    if since is not None:
        starts = found["start_ns"].to_pylist()
        # Whole seconds, or milliseconds, of a start are rounded down.
        assert since * 1e9 - 1e9 <= min(starts) <= max(starts) <= time.time_ns()
    assert b"without a usable time" not in found.schema.metadata[b"warnings"]
    return found


def test_k6(tmp_path: Path, server: Server) -> None:
    script = tmp_path / "k6.js"
    script.write_text(K6 % (SENT, server.url))
    begun = time.time()
    outputs = [word for name in ("a.csv", "a.json") for word in ("--out", f"{name[2:]}={name}")]
    run("k6", ["run", "--quiet", "--no-usage-report", *outputs, script], tmp_path)
    from_csv = check(tmp_path / "a.csv", "k6", server, begun)
    from_json = check(tmp_path / "a.json", "k6-json", server, begun)
    assert from_csv["status"].to_pylist().count(500) == SENT // 4
    assert sorted(from_csv["duration_ns"].to_pylist()) == sorted(
        from_json["duration_ns"].to_pylist()
    )
    run("k6", ["run", "--quiet", "--no-usage-report", "--out", "json=b.json.gz", script], tmp_path)
    assert read_load_output(tmp_path / "b.json.gz").num_rows == SENT


def test_two_files_of_k6_get_a_verdict_by_one_command(tmp_path: Path, server: Server) -> None:
    script = tmp_path / "k6.js"
    script.write_text(K6 % (SENT, server.url))
    for name in ("old", "new"):
        run(
            "k6",
            ["run", "--quiet", "--no-usage-report", "--out", f"json={name}.json", script],
            tmp_path,
        )
    done = subprocess.run(
        # The server of these tests fails on purpose.
        [sys.executable, "-m", "tare", "compare", "old.json", "new.json", "--json",
         "--max-errors", "50%"],
        cwd=tmp_path, text=True, capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    first = json.loads(done.stdout)["comparisons"][0]
    assert (first["verdict"], first["runs_needed"]) == ("inconclusive", 5)


def test_locust(tmp_path: Path, server: Server) -> None:
    begun = time.time()
    options = ["--headless", "--users", "2", "--spawn-rate", "2", "--run-time", "8s"]
    file: list[str | Path] = ["--locustfile", HERE / "locustfile.py", "--only-summary"]
    # Locust ends with 1 when a request has failed.
    options += ["--host", server.url.rstrip("/")]
    run("locust", [*file, *options], tmp_path, codes=(0, 1), ROWS=str(tmp_path / "a.csv"))
    columns = {"start": "start_time", "duration": "response_time", "ok": "ok"}
    check(tmp_path / "a.csv", "locust", server, begun, ImportOptions(columns, "ms"))
    plain = read_load_output(tmp_path / "a.csv")
    assert plain.num_rows == SENT


@pytest.mark.parametrize("parent", ["false", "true"])
@pytest.mark.parametrize(("form", "name"), [("csv", "jmeter"), ("xml", "jmeter-xml")])
def test_jmeter(tmp_path: Path, server: Server, form: str, name: str, parent: str) -> None:
    """Each request stands in a transaction, which has a row after it, before it, or around it."""
    begun = time.time()
    plan = (HERE / "plan.jmx").read_text().replace("PORT", str(server.server_port))
    plan = plan.replace("PARENT", parent)
    (tmp_path / "plan.jmx").write_text(plan)
    wanted = f"-Jjmeter.save.saveservice.output_format={form}"
    run("jmeter", ["-n", "-t", "plan.jmx", "-l", "a.jtl", wanted], tmp_path)
    found = check(tmp_path / "a.jtl", name, server, begun)
    doubled = b"60 rows of transactions left out" in found.schema.metadata[b"warnings"]
    # In XML a parent has its requests inside of it.
    assert doubled == ((form, parent) != ("xml", "true"))
    assert found["status"].to_pylist().count(500) == SENT // 4
    assert min(found["bytes"].to_pylist()) > 2


def test_oha(tmp_path: Path, server: Server) -> None:
    words = ["--no-tui", "-n", str(SENT), "-c", "2", "--output-format"]
    (tmp_path / "a.csv").write_text(run("oha", [*words, "csv", server.url], tmp_path))
    found = check(tmp_path / "a.csv", "oha", server, None)
    assert found["status"].to_pylist().count(500) == SENT // 4
    assert 0 <= min(found["start_ns"].to_pylist()) < 10e9


def test_oha_json(tmp_path: Path, server: Server) -> None:
    words = ["--no-tui", "-n", str(SENT), "-c", "2", "--output-format", "json"]
    path = tmp_path / "a.json"
    path.write_text(run("oha", [*words, server.url], tmp_path))
    run_of, _ = read_files({"a": [path], "b": [path]}, "a").runs
    assert (detect(path), run_of.requests, run_of.errors) == ("oha-json", SENT, SENT // 4)
    percentiles = json.loads(path.read_text())["latencyPercentiles"]
    assert run_of.summaries["p95"] == percentiles["p95"] * 1e9
    assert run_of.summaries["mean"] > SLOWNESS * 1e9


def test_hey(tmp_path: Path, server: Server) -> None:
    words = ["-n", str(SENT), "-c", "2", "-o", "csv", server.url]
    (tmp_path / "a.csv").write_text(run("hey", words, tmp_path))
    check(tmp_path / "a.csv", "hey", server, None)


def test_fortio(tmp_path: Path, server: Server) -> None:
    words = ["load", "-quiet", "-json", "a.json", "-n", str(SENT), "-c", "2", "-qps", "0"]
    run("fortio", [*words, "-r", "1e-5", server.url], tmp_path)
    path = tmp_path / "a.json"
    run_of, _ = read_files({"a": [path], "b": [path]}, "a").runs
    assert (detect(path), run_of.requests, run_of.errors) == ("fortio", SENT, SENT // 4)
    assert run_of.summaries["p50"] >= SLOWNESS * 1e9
    assert run_of.started_ns is not None
    assert abs(run_of.started_ns - time.time_ns()) < 120e9


def test_gatling(tmp_path: Path, server: Server) -> None:
    libraries = TOOLS.parent / "gatling" / "lib"
    begun = time.time()
    if libraries.is_dir():
        sources = [
            "javac",
            "-cp",
            f"{libraries}/*",
            "-d",
            str(tmp_path),
            str(HERE / "Requests.java"),
        ]
        subprocess.run(sources, check=True, timeout=100)
    run(
        "gatling", ["-s", "Requests", "-rf", "out", "-nr"], tmp_path,
        SIMULATIONS=str(tmp_path), JAVA_TOOL_OPTIONS=f"-Durl={server.url.rstrip('/')}",
    )  # fmt: skip
    (path,) = tmp_path.glob("out/*/simulation.log")
    assert path.read_text().startswith("ASSERTION\t")
    check(path, "gatling", server, begun)
