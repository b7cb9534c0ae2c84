# SPDX-License-Identifier: Apache-2.0
"""redis: server with I/O threads and client; transactions, pipelining, snapshots by fork."""

import re
import socket
from pathlib import Path

from tests.hook.hooked import Behaviour, plain
from tests.hook.programs.ways import Command, Wrap, both, free_port, need, serving
from tests.waiting import wait_for

OPTIONS = """
bind 127.0.0.1
save ""
appendonly yes
io-threads 2
io-threads-do-reads yes
"""
COMMANDS = """
SET greeting "hello there"
GET greeting
MULTI
INCR count
INCRBY count 41
LPUSH list a b c
EXEC
LRANGE list 0 -1
INCR greeting
EVAL "return redis.call('GET', KEYS[1])" 1 greeting
BLPOP nothing 0.05
GET
"""


def said(port: int, command: str) -> str:
    """A command's answer, outside of the hook."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(command.encode() + b"\r\n")
        return connection.recv(1 << 16).decode()


def saved(port: int) -> bool:
    info = said(port, "INFO persistence")
    done = re.findall(r"(?:rdb_bgsave|aof_rewrite)_in_progress:0", info)
    return len(done) == 2 and "aof_rewrite_scheduled:0" in info


def test_redis(tmp_path: Path) -> None:
    need("redis-server", "redis-cli")
    pipelined = "".join(f"SET key:{i} {'value' * (1 + i % 50)}\r\n" for i in range(20_000))

    def session(wrap: Wrap) -> list[Behaviour | str]:
        folder = tmp_path / f"redis-{free_port()}"
        folder.mkdir()
        config = folder / "redis.conf"
        config.write_text(OPTIONS)
        port = free_port()
        server: Command = ["redis-server", config, "--port", str(port), "--dir", folder]
        client = wrap(["redis-cli", "-p", str(port)])
        transcript: list[Behaviour | str] = []
        with serving(wrap(server), port):
            transcript.append(plain(client, tmp_path, stdin=COMMANDS))
            pipe = wrap(["redis-cli", "-p", str(port), "--pipe"])
            transcript.append(plain(pipe, tmp_path, stdin=pipelined))
            transcript += [said(port, "BGSAVE"), said(port, "BGREWRITEAOF")]
            wait_for(lambda: saved(port), "the snapshots")
            errors = said(port, "INFO persistence")
            transcript += re.findall(r"(?:rdb_last_bgsave|aof_last_\w+)_status:\w+", errors)
        with serving(server, port):  # what it wrote under the hook
            wait_for(lambda: "LOADING" not in said(port, "DBSIZE"), "the data")
            transcript += [said(port, "DBSIZE"), said(port, "GET count")]
        return transcript

    first, second, *rest = both(session, tmp_path)
    assert isinstance(first, Behaviour)
    assert isinstance(second, Behaviour)
    assert "hello there\n" in first.out
    assert "errors: 0, replies: 20000" in second.out
    assert rest[-2:] == [":20003\r\n", "$2\r\n42\r\n"]
    assert "rdb_last_bgsave_status:ok" in rest
