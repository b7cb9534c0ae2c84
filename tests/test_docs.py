# SPDX-License-Identifier: Apache-2.0
"""The commands that the pages begin with work as they stand."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.waiting import SECONDS

from tare.lab.environments.ports import free_port
from tare.native import native

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def first_block(page: str) -> str:
    """The commands of the page's first example, of which there are three."""
    block = re.search(r"\n## First example\n```sh\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    assert block, f"{page} has no commands in its first example"
    assert block[1].count("\n") == 3
    return block[1]


def run(commands: str, port: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs them as one script on a free port, for moments; what they leave running ends too."""
    if not Path(native("bin", "tare-load")).exists():
        pytest.skip("tare-load is not built")
    here = str(free_port("127.0.0.1"))
    assert port in commands
    shortened = re.sub(r"--duration \ds", "--duration 300ms", commands.replace(port, here))
    # Where the server takes longer to listen than the second that a person waits.
    shortened = shortened.replace(
        "sleep 1", f"until (: </dev/tcp/127.0.0.1/{here}); do sleep 0.1; done"
    )
    process = subprocess.Popen(
        ["bash", "-c", shortened],
        cwd=folder,
        env=os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=SECONDS)
    finally:
        with suppress(ProcessLookupError):  # the server, where a command before `kill` failed
            os.killpg(process.pid, signal.SIGKILL)
    return subprocess.CompletedProcess(shortened, process.returncode, out, err)


def test_the_first_commands_of_load(tmp_path: Path) -> None:
    done = run(first_block("load.md"), "8000", tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "samples.arrow").stat().st_size
    assert done.stdout.count("p99") == 2


def test_the_first_commands_of_load_tcp(tmp_path: Path) -> None:
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed")
    done = run(first_block("load-tcp.md"), "6390", tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("p99") == 1


def test_the_first_commands_of_compare(tmp_path: Path) -> None:
    done = run(first_block("compare.md").replace("2s", "300ms --warmup 0s"), "8800", tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.glob("*/*.arrow"))) == 12
    verdicts = "slower|faster|unchanged|shape-changed|inconclusive"
    assert re.search(rf"HEAD against GET, 6\+6 runs\n +({verdicts}) +p50 ", done.stdout)


class Jaeger(BaseHTTPRequestHandler):
    """Answers as `/api/traces` does; requests of the last hour take a fifth longer."""

    def do_GET(self) -> None:
        asked = {name: value for name, (value,) in parse_qs(urlsplit(self.path).query).items()}
        start = int(asked["start"])
        generator = random.Random(start)
        took = 12_000 if time.time() - start / 1e6 < 3_700 else 10_000
        span = {"operationName": "GET /", "processID": "p1"}
        traces = [
            {
                "traceID": f"{start + number:x}",
                "processes": {"p1": {"serviceName": asked["service"]}},
                "spans": [
                    span
                    | {
                        "traceID": f"{start + number:x}",
                        "spanID": "a",
                        "startTime": start + 50_000 * number,
                        "duration": int(took * generator.gauss(1, 0.05)),
                    }
                ],
            }
            for number in range(100)
        ]
        body = json.dumps({"data": traces}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.mark.exhaustive
def test_the_first_commands_of_spans(tmp_path: Path) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Jaeger) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        here = f"127.0.0.1:{server.server_address[1]}"
        done = subprocess.run(
            ["bash", "-c", first_block("spans.md").replace("localhost:16686", here)],
            cwd=tmp_path,
            env=os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )
        server.shutdown()
    assert done.returncode == 0, done.stderr
    assert re.search(r"frontend: GET / against old, 6\+6 runs\n +slower +p50 ", done.stdout)


def test_the_commands_on_published_data() -> None:
    section = (DOCS / "internals/compare.md").read_text().split("\n## Published data\n")[1]
    block = re.search(r"```sh\n(.*?)```", section, re.DOTALL)
    assert block
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", block[1]],
        cwd=ROOT,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"hook against plain, 1\+1 runs\n +inconclusive +p50 ", done.stdout)
    assert "the published t-test is significant" in " ".join(done.stdout.split())


def test_the_first_commands_of_log(tmp_path: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", first_block("log.md")],
        cwd=tmp_path,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    payloads = [line.split(",")[6] for line in done.stdout.splitlines()]
    assert payloads == ["99997", "99998", "99999"]


def test_the_first_commands_of_link(tmp_path: Path) -> None:
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed")
    done = run(first_block("link.md"), "7100", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "GET: " in done.stdout
    assert re.search(r"^ +4  links ", done.stderr, re.MULTILINE), done.stderr


def test_the_first_commands_of_hook(tmp_path: Path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    (tmp_path / "plans").symlink_to(ROOT / "plans")
    done = run(first_block("hook.md"), "8000", tmp_path)
    assert done.returncode == 0, done.stderr
    [event] = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    assert event["keyword"] == "password"
    assert json.loads(done.stdout.splitlines()[-1]) == event
    assert "calls by function" in done.stderr
