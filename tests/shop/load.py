# SPDX-License-Identifier: Apache-2.0
"""Sends a number of requests over some connections: load.py URL REQUESTS CONNECTIONS FILE.

A load of Tare's own would end after a time, and so send fewer requests on a slow machine.
"""

import http.client
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path
from urllib.parse import urlsplit


def send(url: str, requests: int) -> list[tuple[float, float]]:
    """Start in s and duration in ms of requests, one after the other."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc)
    found = []
    for _ in range(requests):
        start, begun = time.time(), time.perf_counter()
        connection.request("GET", parts.path)
        answer = connection.getresponse()
        text = answer.read()
        found.append((start, 1e3 * (time.perf_counter() - begun)))
        if answer.status != 200:
            sys.exit(f"status {answer.status}: {text.decode(errors='replace')}")
    return found


def main(url: str, requests: int, connections: int, file: Path) -> None:
    counts = [requests // connections + (at < requests % connections) for at in range(connections)]
    with ThreadPoolExecutor(connections) as threads:
        found = [row for rows in threads.map(send, repeat(url), counts) for row in rows]
    lines = (f"{start:.6f},{duration:.3f}\n" for start, duration in sorted(found))
    file.write_text("start_time,response_time\n" + "".join(lines), encoding="ascii")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
