# SPDX-License-Identifier: Apache-2.0
"""Every subset of hook, link and log that has a link, in every order, around a server whose client
is linked: the same answers, and each layer sees all that it sees alone."""

import json
import shlex
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

import pytest
from tests.hook.hooked import COMMAND, rules
from tests.hook.programs.ways import need, serving
from tests.link import linked
from tests.link.programs import PYTHON, free_port, nginx
from tests.log.conftest import TARE_LOG, dump
from tests.stacked.test_stacked import WORD, Command, library

LAYERS = ("hook", "link", "log")
ORDERS = [order for size in (1, 2, 3) for order in permutations(LAYERS, size) if "link" in order]
TIMES = 60
PAGE = "the page\n" * 100
PAGES = [f"GET /page HTTP/1.1\r\nHost: x\r\nX: {WORD}\r\n\r\n"] * TIMES
VALUES = [f"SET {WORD} hello\r\n", *[f"GET {WORD}\r\n"] * TIMES]
ANSWERS = {"nginx": [PAGE] * TIMES, "redis": ["+OK\r\n", *["hello\r\n"] * TIMES]}
CLIENT = r"""
import json, socket, sys
answers = []
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as connection:
    replies = connection.makefile("rb")
    for request in json.loads(sys.argv[2]):
        connection.sendall(request.encode())
        head = replies.readline()
        length = int(head[1:]) + 2 if head[:1] == b"$" else 0
        while head.startswith(b"HTTP") and (line := replies.readline()) != b"\r\n":
            name, _, value = line.partition(b":")
            if name == b"Content-Length":
                length = int(value)
        answers.append(replies.read(length).decode() or head.decode())
print(json.dumps(answers))
"""


def server(name: str, folder: Path, port: int) -> tuple[Command, list[str]]:
    """The command of a server, and what it is asked."""
    if name == "nginx":
        need("nginx")
        return nginx(folder, port, {"page": PAGE.encode()}), PAGES
    need("redis-server")
    options = ["--bind", "127.0.0.1", "--save", "", "--io-threads", "2", "--dir", str(folder)]
    return ["redis-server", "--port", str(port), *options], VALUES


@pytest.mark.parametrize("order", ORDERS, ids=":".join)
@pytest.mark.parametrize("name", ["nginx", "redis"])
def test_layers_see_the_bytes_of_links(name: str, order: Sequence[str], tmp_path: Path) -> None:
    need("cc")
    port = free_port()
    command, requests = server(name, tmp_path, port)
    events, log, counts = (tmp_path / file for file in ("events", "log", "counts"))
    (tmp_path / "rules.toml").write_text(rules(WORD, direction="in"))
    link = shlex.join([linked.LINK, "--eager", "--json"])
    around: dict[str, Command] = {
        "hook": [COMMAND, "--rules", tmp_path / "rules.toml", "--events", events, "--"],
        "link": ["sh", "-c", f'exec {link} -- "$@" 2>{counts}', "sh"],
        "log": [TARE_LOG, "run", "--out", log, "--"],
    }
    outside = [word for layer in order for word in around[layer]]
    # A program that logs: its own calls are above those of all layers.
    logs = ["sh", "-c", f'LD_PRELOAD={library()}:$LD_PRELOAD exec "$@"', "sh"]
    with serving([*outside, *(logs if "log" in order else []), *command], port):
        client = linked.run(PYTHON, "-c", CLIENT, str(port), json.dumps(requests))
    assert (client.code, client.errors) == (0, "")
    assert json.loads(client.output) == ANSWERS[name]
    for counted in (client.counts, json.loads(counts.read_text().splitlines()[-1])):
        assert counted["reset"] == 0
        linked.assert_carried(counted, 1)
    if "hook" in order:
        found = [json.loads(line)["keyword"] for line in events.read_text().splitlines()]
        assert found == [WORD] * "".join(requests).count(WORD)
    if "log" in order:
        assert sum(int(row.payload) for row in dump(log)) == len("".join(requests))
