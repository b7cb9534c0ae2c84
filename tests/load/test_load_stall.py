# SPDX-License-Identifier: Apache-2.0
"""A server that stalls: an open loop shows it to every request that came meanwhile."""

import asyncio
import threading
import time
from collections.abc import Iterator
from itertools import pairwise

import pytest
from tests.load.conftest import Measure, Measurement

STALL = 0.2
STALLED_REQUEST = 50
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
RATE = 500
LATE_NS = 100_000_000
# Those that should have started in the first 100 ms of the stall, and some to spare.
AT_LEAST_LATE = int(RATE * (STALL - 0.1)) - 5


@pytest.fixture
def url() -> Iterator[str]:
    """A server that holds up all of its connections once."""
    requests = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal requests
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                requests += 1
                if requests == STALLED_REQUEST:
                    time.sleep(STALL)
                writer.write(ANSWER)
        except (asyncio.IncompleteReadError, ConnectionResetError):
            writer.close()

    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(asyncio.start_server(serve, "127.0.0.1", 0))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    server.close()
    for task in asyncio.all_tasks(loop):
        task.cancel()
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()


def _late(measured: Measurement) -> tuple[int, int]:
    """How many requests had a late answer: by response time, by service time."""
    ends = [row["start_ns"] + row["duration_ns"] for row in measured.samples]
    response = [end - row["intended_ns"] for end, row in zip(ends, measured.samples, strict=True)]
    service = [row["duration_ns"] for row in measured.samples]
    late = [sum(time > LATE_NS for time in times) for times in (response, service)]
    return late[0], late[1]


def test_an_open_loop_does_not_omit_the_stall(url: str, measure: Measure) -> None:
    measured = measure(url, "--mode", "open", "--rate", str(RATE), "--duration", "1s")

    intended = sorted(row["intended_ns"] for row in measured.samples)
    # The window is rounded up to whole slices of 5 ms, which begin late on a busy machine.
    window_s = sum(row["duration_ns"] for row in measured.machine if row["metric"] == "steal") / 1e9
    assert RATE - 2 <= len(intended) <= RATE * window_s + 2
    assert all(abs(b - a - 1e9 / RATE) <= 1 for a, b in pairwise(intended))
    assert _late(measured)[0] >= AT_LEAST_LATE
    assert measured.summary["targets"][0]["p99_ns"] > LATE_NS


def test_on_one_connection_the_stall_is_in_response_time(url: str, measure: Measure) -> None:
    load = ["--mode", "open", "--rate", str(RATE), "--duration", "1s", "--users", "1"]
    response, service = _late(measure(url, *load))
    assert response >= AT_LEAST_LATE
    assert service < AT_LEAST_LATE


def test_a_closed_loop_meets_the_stall_once(url: str, measure: Measure) -> None:
    measured = measure(url, "--requests", "100")
    assert all(row["intended_ns"] == row["start_ns"] for row in measured.samples)
    response, service = _late(measured)
    assert 1 <= response == service < AT_LEAST_LATE
