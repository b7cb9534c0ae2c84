# SPDX-License-Identifier: Apache-2.0
"""Symbolic links, files and pipes of another user in a folder where a command of root works."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from tests.hostile.conftest import AS_NOBODY, NOBODY, VICTIM
from tests.waiting import SECONDS, wait_for

from tare.native import native

HOOK, LINK, LOG = (native("bin", f"tare-{layer}") for layer in ("hook", "link", "log"))
RULES = "[[rule]]\nkeywords = ['one']\n"


def plant(link: Path, target: Path) -> None:
    link.symlink_to(target)
    os.chown(link, NOBODY, NOBODY, follow_symlinks=False)


def ran(folder: Path, *words: object) -> "subprocess.CompletedProcess[str]":
    command = [str(word) for word in (*words, "--", "true")]
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=SECONDS
    )


@pytest.mark.parametrize(
    "words",
    [
        (LOG, "run"),
        (LOG, "run", "--out", "events", "--costs", "tare.log"),
        (HOOK, "--events", "tare.log"),
        (HOOK, "--costs", "tare.log"),
    ],
    ids=["out", "log-costs", "events", "hook-costs"],
)
def test_link_of_another_user_is_not_followed(
    words: tuple[object, ...], open_to_all: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.touch()
    plant(open_to_all / "tare.log", secret)
    done = ran(open_to_all, *words)
    assert done.returncode == 2
    assert f"it is a symbolic link of user {NOBODY}" in done.stderr
    assert secret.read_bytes() == b""
    os.chown(open_to_all / "tare.log", 0, 0, follow_symlinks=False)
    assert ran(open_to_all, *words).returncode == 0


@pytest.fixture
def events(tmp_path: Path) -> Path:
    """A file of events."""
    file = tmp_path / "events.log"
    assert ran(tmp_path, LOG, "run", "--out", file).returncode == 0
    return file


REPLACED: dict[str, tuple[object, ...]] = {
    "export": (LOG, "export", "--to", "chrome", "--out", "planted", "EVENTS"),
    "flame": (LOG, "stats", "--flame", "planted", "EVENTS"),
}
"""Commands that replace a regular file `planted` as a whole, or write to a pipe."""

WRITTEN: dict[str, tuple[object, ...]] = {
    "sync": (LOG, "sync", "--file", "planted", "127.0.0.1:9"),
    "log": (LOG, "run", "--out", "planted", "--", "true"),
    "hook": (HOOK, "--events", "planted", "--", "true"),
    "load": (native("bin", "tare-load"), "http", "--out", "planted", "http://SERVER"),
    "spans-receive": (
        *(native("bin", "tare-spans"), "receive", "--out", "planted"),
        *("--grpc", "127.0.0.1:0"),
    ),
    "spans-decode": (native("bin", "tare-spans"), "decode", "--out", "planted"),
    "link": ("env", "TARE_LINK_LOG=planted", LINK, "--", "true"),
}
"""Commands that write to the file `planted` if there is one."""

FOLDERS: dict[str, tuple[object, ...]] = {
    "ctf": (LOG, "export", "--to", "ctf", "--out", "planted", "EVENTS"),
    "ctf-slash": (LOG, "export", "--to", "ctf", "--out", "planted/", "EVENTS"),
}
"""Commands that write to a folder `planted`."""


def refuse(words: tuple[object, ...], events: Path, folder: Path, what: str) -> None:
    """Fails unless the command reports that `planted` is another user's."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        here = f"127.0.0.1:{server.getsockname()[1]}"
        command = [str(events if word == "EVENTS" else word) for word in words]
        done = subprocess.run(
            [word.replace("SERVER", here) for word in command],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
    assert done.returncode == 2
    assert f"it {what} user {NOBODY}" in done.stderr


def cases(commands: Mapping[str, tuple[object, ...]]) -> "pytest.MarkDecorator":
    return pytest.mark.parametrize("words", list(commands.values()), ids=list(commands))


@cases(REPLACED | WRITTEN)
def test_no_result_goes_where_a_link_of_another_user_leads(
    words: tuple[object, ...], events: Path, open_to_all: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    plant(open_to_all / "planted", secret)
    refuse(words, events, open_to_all, "is a symbolic link of")
    assert secret.read_text() == "secret"


@cases(FOLDERS)
def test_no_results_go_into_a_folder_where_a_link_of_another_user_leads(
    words: tuple[object, ...], events: Path, open_to_all: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    plant(open_to_all / "planted", secret)
    refuse(words, events, open_to_all, "is a symbolic link of")
    assert not list(secret.iterdir())


@cases(REPLACED | WRITTEN | FOLDERS)
def test_no_result_passes_a_link_of_another_user(
    words: tuple[object, ...], events: Path, open_to_all: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "planted").write_text("secret")
    plant(open_to_all / "way", secret)
    through_link = tuple(str(word).replace("planted", "way/planted") for word in words)
    refuse(through_link, events, open_to_all, "is a symbolic link of")
    assert list(secret.iterdir()) == [secret / "planted"]
    assert (secret / "planted").read_text() == "secret"


def test_link_of_another_user_without_an_id_is_not_followed_in_a_user_namespace(
    events: Path, open_to_all: Path
) -> None:
    """There, all users without an ID have the same."""
    secret = open_to_all / "secret"
    secret.write_text("secret")
    os.chown(secret, VICTIM, VICTIM)
    plant(open_to_all / "planted", secret)
    program = shutil.copy(LOG, open_to_all)
    victim = ["setpriv", f"--reuid={VICTIM}", f"--regid={VICTIM}", "--clear-groups"]
    export = ["export", "--to", "chrome", "--out", "planted", shutil.copy(events, open_to_all)]
    done = subprocess.run(
        [*victim, "unshare", "--user", program, *export],
        cwd=open_to_all,
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert f"it is a symbolic link of user {NOBODY}" in done.stderr
    assert secret.read_text() == "secret"


def test_no_socket_is_made_behind_a_link_of_another_user(open_to_all: Path, tmp_path: Path) -> None:
    """A collector deletes its socket at the end, and the link could lead elsewhere then."""
    plant(open_to_all / "way", tmp_path)
    command = [LOG, "collect", "--socket", "way/socket"]
    done = subprocess.run(
        command, cwd=open_to_all, capture_output=True, text=True, check=False, timeout=SECONDS
    )
    assert done.returncode == 2
    assert f"--socket way/socket: it is a symbolic link of user {NOBODY}" in done.stderr
    assert not list(tmp_path.iterdir())


@contextmanager
def jaeger() -> Iterator[str]:
    """A server with one trace."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Jaeger) as server:
        Thread(target=server.serve_forever).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


class Jaeger(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        span = {"traceID": "1", "spanID": "2", "operationName": "one", "startTime": 1}
        span |= {"duration": 1, "processID": "p", "references": [], "tags": []}
        trace = {"traceID": "1", "spans": [span], "processes": {"p": {"serviceName": "one"}}}
        body = json.dumps({"data": [trace]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


PYTHON: dict[str, tuple[str, ...]] = {
    "init": ("init", "--service", "sleep {port}", "--condition", "one=env:A=1", "way/planted"),
    "fetch": ("spans", "fetch", "SERVER", "--service", "one", "--out", "way/planted"),
    "history": ("compare", "FIRST", "SECOND", "--history", "way/planted"),
}
"""Commands in Python that write to a file or folder `planted`."""


@cases(PYTHON)
def test_no_output_of_python_passes_a_link_of_another_user(
    words: tuple[str, ...], open_to_all: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    plant(open_to_all / "way", secret)
    for name in ("first", "second"):
        times = "\n".join(str(1_000_000 + place) for place in range(100))
        (tmp_path / f"{name}.csv").write_text(f"duration_ns\n{times}\n")
    with jaeger() as server:
        places = {"SERVER": server, "FIRST": tmp_path / "first.csv"}
        places["SECOND"] = tmp_path / "second.csv"
        done = subprocess.run(
            [sys.executable, "-m", "tare", *(str(places.get(word, word)) for word in words)],
            cwd=open_to_all,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
    assert f"passes a symbolic link of user {NOBODY}" in done.stderr
    assert done.returncode == 2
    assert not list(secret.iterdir())


@cases(WRITTEN)
def test_no_result_goes_to_a_file_of_another_user(
    words: tuple[object, ...], events: Path, open_to_all: Path
) -> None:
    as_nobody(open_to_all, "touch planted")
    refuse(words, events, open_to_all, "belongs to")
    assert (open_to_all / "planted").read_bytes() == b""


@cases(REPLACED | WRITTEN)
def test_no_result_goes_to_a_pipe_of_another_user(
    words: tuple[object, ...], events: Path, open_to_all: Path
) -> None:
    as_nobody(open_to_all, "mkfifo planted")
    with read_by_nobody(open_to_all / "planted"):
        refuse(words, events, open_to_all, "belongs to")


def as_nobody(folder: Path, script: str) -> None:
    subprocess.run([*AS_NOBODY, "sh", "-ec", script], check=True, cwd=folder, timeout=SECONDS)


@contextmanager
def read_by_nobody(pipe: Path) -> Iterator[None]:
    """Fails if anything is written to the pipe meanwhile."""
    command = [*AS_NOBODY, "cat", str(pipe)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as reader:
        try:
            yield
        finally:
            reader.kill()
        assert reader.stdout is not None
        assert reader.stdout.read() == b""


@pytest.mark.parametrize("command", [(HOOK,), (LINK,), (LOG, "run")], ids=["hook", "link", "log"])
def test_costs_that_another_user_makes_a_pipe_are_replaced(
    command: tuple[object, ...], open_to_all: Path, tmp_path: Path
) -> None:
    costs, begun = open_to_all / "costs", tmp_path / "begun"
    words = map(str, (*command, "--costs", costs, "--"))
    program = ["sh", "-c", f"touch {begun}; exec sleep {2 * SECONDS}"]
    with subprocess.Popen([*words, *program], cwd=tmp_path) as process:
        try:
            wait_for(begun.exists)
            as_nobody(open_to_all, "mkfifo pipe; mv -f pipe costs")
            wait_for(lambda: costs.is_file() and costs.stat().st_size > 0)
            process.terminate()
            process.wait(SECONDS)
        finally:
            process.kill()


CONNECT = """
import socket
input()
with socket.create_server(("127.0.0.1", 0)) as server:
    with socket.create_connection(server.getsockname()) as client, server.accept()[0] as accepted:
        client.sendall(b"1")
        accepted.recv(1)
"""


@pytest.mark.parametrize(
    "planted", ["ln -s SECRET", "touch", "mkfifo"], ids=["link", "file", "pipe"]
)
def test_linked_program_does_not_log_where_another_user_wants(
    planted: str, open_to_all: Path, tmp_path: Path
) -> None:
    log, secret = open_to_all / "log", tmp_path / "secret"
    secret.touch()
    command = [LINK, "--eager", "--", sys.executable, "-c", f"print(flush=True){CONNECT}"]
    environment = os.environ | {"TARE_LINK_LOG": str(log)}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe) as program:
        try:
            assert program.stdout is not None
            assert program.stdout.readline() == b"\n"
            as_nobody(open_to_all, f"{planted.replace('SECRET', str(secret))} new; mv -f new log")
            if log.is_fifo():
                with read_by_nobody(log):
                    program.communicate(b"\n", SECONDS)
            else:
                program.communicate(b"\n", SECONDS)
                assert log.read_bytes() == b""
        finally:
            program.kill()
    assert program.returncode == 0


PIDS = 2_000
"""So many names are planted: the process that writes next has one of these numbers."""


@pytest.mark.parametrize("form", ["chrome", "parquet"])
def test_names_of_unfinished_exports_cannot_be_guessed(
    form: str, events: Path, open_to_all: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    with subprocess.Popen(["true"]) as last:
        pass
    for pid in range(last.pid, last.pid + PIDS):
        plant(open_to_all / f".tare-export-{pid}", secret)
    command = [LOG, "export", "--to", form, "--out", str(open_to_all / "out"), str(events)]
    assert subprocess.run(command, check=False, capture_output=True).returncode == 0
    assert secret.read_text() == "secret"
    assert (open_to_all / "out").stat().st_size > 0


@pytest.mark.parametrize("command", [(LOG, "run", "--out", "events"), (HOOK,)], ids=["log", "hook"])
def test_link_at_the_name_of_the_next_costs_is_not_followed(
    command: tuple[object, ...], open_to_all: Path, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    plant(open_to_all / "costs.new", secret)
    assert ran(open_to_all, *command, "--costs", "costs").returncode == 0
    assert secret.read_text() == "secret"
    assert (open_to_all / "costs").stat().st_size > 0


def test_hook_reads_no_rules_from_a_pipe(tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    os.mkfifo(rules)
    done = ran(tmp_path, HOOK, "--rules", rules)
    assert done.returncode == 2
    assert "not a regular file" in done.stderr


def test_rules_that_become_a_pipe_do_not_stop_the_hook(tmp_path: Path) -> None:
    rules, pipe, begun = tmp_path / "rules.toml", tmp_path / "pipe", tmp_path / "begun"
    rules.write_text(RULES)
    os.mkfifo(pipe)
    program = ["sh", "-c", f"touch {begun}; exec sleep {SECONDS}"]
    command = [HOOK, "--rules", str(rules), "--", *program]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as hook:
        wait_for(begun.exists)
        pipe.rename(rules)
        try:
            assert hook.stderr is not None
            line = hook.stderr.readline()
            hook.send_signal(signal.SIGTERM)
            hook.wait(SECONDS)
        finally:
            hook.kill()
    assert "not a regular file" in line
    assert "the previous rules stay in force" in line
