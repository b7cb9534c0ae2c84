# SPDX-License-Identifier: Apache-2.0
"""Mistakes of a first experiment: the message says what to write instead."""

import shlex
import sys
from pathlib import Path

import pytest
from tests.in_process import Done, tare

SHOP = """
import http.server, sys
class Shop(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_error(404)
    def log_message(self, *_):
        pass
http.server.HTTPServer((sys.argv[1], int(sys.argv[2])), Shop).serve_forever()
"""
# Answers each connection with bytes that are no HTTP, or with none.
OTHER = """
import socket, sys
with socket.create_server((sys.argv[1], int(sys.argv[2]))) as listener:
    while True:
        with listener.accept()[0] as peer:
            peer.sendall(sys.argv[3].encode())
"""
PYTHON = shlex.quote(sys.executable)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "shop.py").write_text(SHOP)
    (tmp_path / "other.py").write_text(OTHER)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(service: str, *words: str) -> Done:
    short = ("--load", "duration=100ms", "--load", "warmup=10ms", "--out", "result")
    condition = () if "--condition" in words else ("--condition", "a=env:A=1")
    return tare("run", "--service", service, *condition, *short, *words)


def test_a_file_of_the_current_folder() -> None:
    done = run(f"{PYTHON} shop.py {{address}} {{port}}")
    assert done.returncode == 1
    hint = "the service runs in a new folder: write {plan}/shop.py instead of shop.py; see "
    assert hint in done.stderr.splitlines()[-1], done.stderr
    assert done.stderr.count("can't open file") == 1


def test_a_script_is_no_file() -> None:
    done = run(f"sh -c {shlex.quote('true ' * 60 + '; exit 3')} {{port}}")
    assert done.returncode == 1
    assert "exited with code 3 before it was ready; " in done.stderr


def test_a_program_of_the_current_folder_is_refused_before_anything_starts() -> None:
    done = run("./shop.py {address} {port}", "--dry-run")
    assert done.returncode == 2
    assert "expected {plan}/shop.py: programs run in a new folder" in done.stderr


def test_a_program_that_the_plan_writes_is_left_to_the_run(folder: Path) -> None:
    (folder / "true.sh").write_text("#!/bin/sh\n")
    done = run("./true.sh {port}", "--file", "true.sh", "--dry-run")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("rules", "why"),
    [
        ('[[rule]]\nkeyword = "x"\n', "rules.toml:2: rule[1].keyword: found an unknown key"),
        ("password\n", "rules.toml:1: key with no value"),
    ],
)
def test_wrong_rules_are_refused_before_anything_starts(folder: Path, rules: str, why: str) -> None:
    (folder / "rules.toml").write_text(rules)
    done = run("true {port}", "--condition", "hook=hook:rules.toml", "--dry-run")
    assert done.returncode == 2
    assert 'found "rules.toml", expected rules of the hook (' in done.stderr
    assert why in done.stderr


def test_a_service_that_goes_to_the_background() -> None:
    done = run("true {port}")
    assert done.returncode == 1
    assert "exited with code 0 before it was ready; start the service in the foreground" in (
        done.stderr
    )


@pytest.mark.parametrize(
    ("service", "why"),
    [
        ("shop.py {address} {port}", "most often: status 404; check path, or allow it with expect"),
        ("other.py {address} {port} +OK", "most often: the answers are not HTTP; for a service"),
        ("other.py {address} {port} ''", "most often: the service closed the connection before it"),
    ],
)
def test_a_service_that_gives_another_answer(service: str, why: str) -> None:
    done = run(f"{PYTHON} {{plan}}/{service}")
    assert done.returncode == 1
    assert why in done.stderr.splitlines()[-1], done.stderr
