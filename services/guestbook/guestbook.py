# SPDX-License-Identifier: Apache-2.0
"""The application of the guestbook: each GET adds an entry, and answers the last ten."""

import json
import os
import time
from collections.abc import Callable, Iterable

import redis

STORE = redis.Redis(os.environ["STORE"])
SHOWN = 10


def application(
    request: dict[str, str], start: Callable[[str, list[tuple[str, str]]], object]
) -> Iterable[bytes]:
    """Answers one request (PEP 3333)."""
    entry = {"at": time.time(), "from": request.get("REMOTE_ADDR"), "path": request["PATH_INFO"]}
    with STORE.pipeline() as commands:
        commands.lpush("entries", json.dumps(entry))
        commands.ltrim("entries", 0, SHOWN - 1)
        commands.lrange("entries", 0, -1)
        entries = commands.execute()[-1]
    body = json.dumps([json.loads(entry) for entry in entries]).encode()
    start("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]
