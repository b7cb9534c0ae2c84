# SPDX-License-Identifier: Apache-2.0
"""What the hook finds in the traffic of a real server, and says of it."""

import json
import socket
import sys
import time
from pathlib import Path

import pytest
from tests.hook_command.service import HOOK, Hooked, Nginx, Start, exchange, request, rules
from tests.waiting import SECONDS


def test_an_event_says_who_where_and_when(nginx: Nginx, start: Start) -> None:
    hooked = Hooked(nginx, start, rules("needle", scope="http"))
    sent = request(b"hay needle hay")
    before = time.time_ns()
    with nginx.connect() as connection:
        exchange(connection, sent)
        exchange(connection, sent)
        client = "{}:{}".format(*connection.getsockname())
    after = time.time_ns()
    first, second = hooked.events(2)
    for event in (first, second):
        assert event["layer"] == "hook"
        assert (event["local"], event["remote"]) == (f"127.0.0.1:{nginx.port}", client)
        assert (event["keyword"], event["action"]) == ("needle", "trace")
        assert (event["function"], event["direction"]) == ("recv", "in")
        assert Path(f"/proc/{event['pid']}/comm").read_text() == "nginx\n"
        assert Path(f"/proc/{event['pid']}/task/{event['tid']}").is_dir()
    # The clocks of the two processes are the same one, read in different ways.
    assert before - 1_000_000 < first["time_ns"] < second["time_ns"] < after + 1_000_000
    assert first["offset"] == sent.index(b"needle")
    assert second["offset"] == len(sent) + sent.index(b"needle")


def test_a_keyword_split_over_reads_is_found_once(nginx: Nginx, start: Start) -> None:
    hooked = Hooked(nginx, start, rules("needle"))
    sent = request(b"needle")
    middle = sent.index(b"needle") + 3
    with nginx.connect() as connection:
        exchange(connection, sent[:middle], sent[middle:])
    [event] = hooked.events(1)
    assert event["offset"] == sent.index(b"needle")


def test_the_end_of_one_connection_and_the_start_of_another_are_no_keyword(
    nginx: Nginx, start: Start
) -> None:
    hooked = Hooked(nginx, start, rules("needle", "marker"))
    sent = request(b"needle")
    middle = sent.index(b"needle") + 3
    with nginx.connect() as connection:
        connection.sendall(sent[:middle])
        time.sleep(0.05)
    with nginx.connect() as connection:
        connection.sendall(sent[middle:])
        time.sleep(0.05)
    with nginx.connect() as connection:
        exchange(connection, request(b"marker"))
    [event] = hooked.events(1)
    assert event["keyword"] == "marker"


def test_case_is_ignored_only_where_the_rule_says_so(nginx: Nginx, start: Start) -> None:
    keywords = '["Exact", {text = "Folded", ignore_case = true}]'
    hooked = Hooked(nginx, start, f"[[rule]]\nkeywords = {keywords}\n")
    with nginx.connect() as connection:
        exchange(connection, request(b"exact fOLDED Exact"))
    assert [event["keyword"] for event in hooked.events(2)] == ["Folded", "Exact"]


def test_what_a_server_sends_is_searched_for_keywords_of_that_direction(
    nginx: Nginx, start: Start
) -> None:
    text = rules("hello", direction="out") + rules("GET", direction="out")
    hooked = Hooked(nginx, start, text)
    ready = hooked.events(1)[0]
    assert (ready["keyword"], ready["direction"]) == ("hello", "out")


def test_block_resets_the_connection_and_leaves_others_alone(nginx: Nginx, start: Start) -> None:
    hooked = Hooked(nginx, start, rules("needle", action="block"))
    with nginx.connect() as good, nginx.connect() as bad:
        bad.sendall(request(b"needle"))
        with pytest.raises(ConnectionResetError):
            bad.recv(4096)
        exchange(good, request())
    [event] = hooked.events(1)
    assert event["action"] == "block"
    assert hooked.process.poll() is None


def test_addresses_of_ip6_have_brackets(tmp_path: Path, start: Start) -> None:
    with socket.socket(socket.AF_INET6) as probe:
        try:
            probe.bind(("::1", 0))
        except OSError:
            pytest.skip("this machine has no IPv6")
    script = """
import socket
server = socket.create_server(("::1", 0), family=socket.AF_INET6)
client = socket.create_connection(server.getsockname()[:2])
other = server.accept()[0]
client.sendall(b"needle")
other.recv(10)
"""
    (tmp_path / "rules.toml").write_text(rules("needle"))
    events = tmp_path / "events.jsonl"
    options = ["--rules", str(tmp_path / "rules.toml"), "--events", str(events)]
    assert start(HOOK, *options, "--", sys.executable, "-c", script).wait(SECONDS) == 0
    [event] = [json.loads(line) for line in events.read_text().splitlines()]
    assert event["local"].startswith("[::1]:")
    assert event["remote"].startswith("[::1]:")
