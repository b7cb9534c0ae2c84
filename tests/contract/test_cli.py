# SPDX-License-Identifier: Apache-2.0
"""Runs cli.toml: same exit codes, one-line errors and --json for every command."""

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.in_process import Done, tare
from tests.once import once
from tests.rights import may_make_namespaces
from tests.waiting import SECONDS

CONTRACT = tomllib.loads((Path(__file__).parent / "cli.toml").read_text())
BIN = Path(sys.executable).parent
# What `tare` carries out without another program, and loads its libraries for.
IN_PROCESS = [
    ("tare", name) for name in ("calibrate", "compare", "doctor", "init", "report", "run")
]
# Nobody, who may read everything: this Python can stand in a folder that is root's alone.
CAPABILITY = "+dac_read_search"
AS_NOBODY = [
    *("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"),
    *(f"--inh-caps={CAPABILITY}", f"--ambient-caps={CAPABILITY}"),
]


class Hello(BaseHTTPRequestHandler):
    """Answers every GET with a few bytes."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "6")
        self.end_headers()
        self.wfile.write(b"hello\n")

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Hello) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


@pytest.fixture(scope="module")
def dead() -> Iterator[str]:
    """A port that is bound and never listens: a connection is refused at once."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/"


@pytest.fixture(scope="module")
def result() -> Path:
    """What `tare run` of the plan leaves."""

    def make(folder: Path) -> None:
        folder.mkdir()
        (folder / "plan.toml").write_text(CONTRACT["plan"])
        command = [str(BIN / "tare"), "run", "plan.toml", "--out", "result"]
        subprocess.run(command, check=True, capture_output=True, cwd=folder)

    return once("contract", make) / "result"


def cases() -> list[Any]:
    exhaustive = pytest.mark.exhaustive
    return [
        pytest.param(case, id=case["name"], marks=exhaustive if case.get("exhaustive") else ())
        for case in CONTRACT["case"]
    ]


@pytest.mark.parametrize("case", cases())
def test_contract(
    case: dict[str, Any], url: str, dead: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    places = {"url": url, "dead": dead, "tmp": str(tmp_path)}
    places |= {"host": _host(url), "dead_host": _host(dead)}
    (tmp_path / "plan.toml").write_text(
        CONTRACT["plan"].replace("100ms", case.get("window", "100ms"))
    )
    for name, text in case.get("files", {}).items():
        (tmp_path / name).write_text(_fill(text, places))
    if (case.get("without_rights") or case.get("needs_root")) and not may_make_namespaces():
        pytest.skip("only root can give its rights up or mount something")
    environment = os.environ | {
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "COLUMNS": "100",
        "NO_COLOR": "1",
    }
    for name in case.get("results", []):
        shutil.copytree(request.getfixturevalue("result"), tmp_path / name)
    if "setup" in case:
        setup = [_fill(word, places) for word in case["setup"]]
        subprocess.run(setup, check=True, capture_output=True, cwd=tmp_path, env=environment)
    command = [_fill(word, places) for word in case["command"]]
    if case.get("without_rights"):
        command = [*AS_NOBODY, *command]
    done = _carried_out(command, case.get("interrupt"), tmp_path, environment)

    out, err = done.stdout, done.stderr
    assert done.returncode == case["exit"], err or out
    assert "Traceback" not in err
    assert "panicked" not in err
    if "error" in case:
        assert len(err.strip().splitlines()) == 1, err
        assert re.search(case["error"], err), err
    if "stdout" in case:
        assert re.search(case["stdout"], out), out
    if "json" in case:
        assert set(case["json"]) <= set(json.loads(out))
    if "json_on_stderr" in case:
        assert set(case["json_on_stderr"]) <= set(json.loads(err))


def _carried_out(
    command: list[str],
    interrupt: str | dict[str, str] | None,
    folder: Path,
    environment: dict[str, str],
) -> Done:
    if interrupt is None and tuple(command[:2]) in IN_PROCESS:
        with contextlib.chdir(folder):
            return tare(*command[1:], **environment)
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env=environment,
    )
    try:
        if interrupt is not None:
            _wait_until(interrupt, process, folder)
            process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
    return Done(process.returncode, out, err)


def _wait_until(moment: str | dict[str, str], process: subprocess.Popen[str], folder: Path) -> None:
    """Until a file has something in it, or is being read."""
    if isinstance(moment, dict):
        read = (folder / moment["reads"]).resolve()
        _wait_for(lambda: read in _open_files(process.pid), process, f"{read} was not read")
    else:
        written = folder / moment
        _wait_for(lambda: _size(written) > 0, process, f"nothing was written to {moment}")
    assert process.poll() is None, "it ended before it was interrupted"


def _wait_for(come: Callable[[], bool], process: subprocess.Popen[str], otherwise: str) -> None:
    limit = time.monotonic() + SECONDS
    while not come():
        assert process.poll() is None, "it ended before it was interrupted"
        assert time.monotonic() < limit, otherwise
        time.sleep(0.01)


def _open_files(pid: int) -> set[Path]:
    found = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):  # closed meanwhile
            found.add(descriptor.readlink())
    return found


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _host(url: str) -> str:
    return url.removeprefix("http://").removesuffix("/")


def _fill(text: str, places: dict[str, str]) -> str:
    for name, value in places.items():
        text = text.replace(f"{{{name}}}", value)
    return text
