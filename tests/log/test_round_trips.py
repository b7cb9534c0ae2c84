# SPDX-License-Identifier: Apache-2.0
"""Round trips between two programs: what the end has of each is how long its question took to
the start and back, and the start has noted it meanwhile."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.log.conftest import TARE_LOG, events, stats
from tests.log.test_handlers import logged
from tests.waiting import SECONDS, wait_for

# The kernel keeps a few hundred datagrams: only round trips one after the other lose none.
PACED = 5_000
HURRIED = 200_000
DELAY_MS = 20

# logs 0, 1, 2 ... on a channel, a little apart
SCRIPT = """
import sys, time
from tare.log import Channel
channel = Channel(sys.argv[1], policy="wait")
for number in range(int(sys.argv[2])):
    channel.log(number * 3)
    time.sleep(float(sys.argv[3]))
"""


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def rules(folder: Path, address: str, more: str = "") -> Path:
    file = folder / "rules"
    file.write_text(
        f"[[rule]]\nchannel = 'out'\nhandler = 'fox-start'\naddress = '{address}'\n"
        f"[[rule]]\nchannel = 'in'\nhandler = 'fox-end'\naddress = '{address}'\n{more}\n"
        "[[rule]]\npolicy = 'wait'\n"
    )
    return file


def collect(folder: Path, name: str, rules: Path, *command: object) -> list[str]:
    out = folder / f"{name}.log"
    words = [TARE_LOG, "run", "--rules", rules, "--out", out, "--json", "--", *command]
    return [str(word) for word in words]


def ask(folder: Path, rules: Path, count: int, apart_s: float) -> dict[str, Any]:
    """The totals of a program that logs to its end of the round trips."""
    program = [sys.executable, "-c", SCRIPT, "in", count, apart_s]
    done = subprocess.run(
        collect(folder, "end", rules, *program), check=True, capture_output=True, text=True
    )
    totals: dict[str, Any] = json.loads(done.stderr)
    return totals


def of(table: pa.Table, channel: str) -> pa.Table:
    return table.filter(pc.equal(table["channel"], channel)).sort_by("ticks")


def check(end: pa.Table, asked: list[int], lost: int) -> pa.Table:
    """Every round trip belongs to one event, and is there or counted as lost."""
    tuples, trips = of(end, "in"), of(end, "in rtt")
    assert tuples["payload"].to_pylist() == asked
    assert len(trips) + lost == len(asked)
    times = trips["ticks"].to_numpy()
    assert (np.diff(times) > 0).all()
    assert set(times) <= set(tuples["ticks"].to_pylist())
    assert (trips["payload"].to_numpy() > 0).all()
    return trips


def test_each_event_has_its_round_trip(tmp_path: Path) -> None:
    """Between two programs and collectors of this host."""
    port = free_port()
    file = rules(tmp_path, f"127.0.0.1:{port}")
    answering = subprocess.Popen(
        collect(tmp_path, "start", file, sys.executable, "-c", SCRIPT, "out", 1, 60)
    )
    try:
        await_bound(port)
        totals = ask(tmp_path, file, PACED, 0.0002)
    finally:
        answering.send_signal(signal.SIGTERM)
        answering.wait(SECONDS)
    asked = [3 * number for number in range(PACED)]
    end, start = events(tmp_path / "end.log"), events(tmp_path / "start.log")
    check(end, asked, totals["lost"])
    assert totals["lost"] < PACED
    answered = of(start, "out answered")
    assert set(answered["payload"].to_pylist()) <= set(asked)
    assert len(answered) >= PACED - totals["lost"]
    assert of(start, "out")["payload"].to_pylist() == [0]
    # The start noted each between its sending and its answer: they share a tick counter here.
    trips, tuples = by(of(end, "in rtt"), "ticks", "payload"), by(of(end, "in"), "ticks", "payload")
    seen = by(answered, "payload", "ticks")
    ticks, times = (np.sort(end[column].to_numpy()) for column in ("ticks", "time_ns"))
    ns_a_tick = (times[-1] - times[0]) / (ticks[-1] - ticks[0])
    for asked_at, rtt in trips.items():
        until_seen = (seen[tuples[asked_at]] - asked_at) * ns_a_tick
        assert 0 < until_seen < 1.001 * rtt + 200


def by(table: pa.Table, key: str, value: str) -> dict[int, int]:
    return dict(zip(table[key].to_pylist(), table[value].to_pylist(), strict=True))


def await_bound(port: int) -> None:
    def is_bound() -> bool:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                return True
        return False

    wait_for(is_bound)


def test_events_in_a_hurry(compiled: Callable[[str], Path], tmp_path: Path) -> None:
    """More than the kernel keeps: each is answered, or counted."""
    file = rules(tmp_path, f"127.0.0.1:{free_port()}")
    program = [compiled("handled"), HURRIED, 1, 1, "end", "out", "in"]
    done = subprocess.run(
        collect(tmp_path, "both", file, *program), check=True, capture_output=True, text=True
    )
    totals = json.loads(done.stderr)
    table = events(tmp_path / "both.log")
    asked = logged(HURRIED, 1)
    assert of(table, "out")["payload"].to_pylist() == asked
    trips = check(table, asked, totals["lost"])
    assert len(trips) > 0
    assert totals["events"] == len(table)
    # What was asked of each trip's event, the start has answered.
    tuples = by(of(table, "in"), "ticks", "payload")
    answered = Counter(of(table, "out answered")["payload"].to_pylist())
    assert Counter(tuples[ticks] for ticks in trips["ticks"].to_pylist()) <= answered


@pytest.mark.parametrize("kind", ["nobody", "late", "stranger"])
def test_what_is_not_answered_in_time_is_counted(kind: str, tmp_path: Path) -> None:
    count = 50
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.bind(("127.0.0.1", 0))
        port = peer.getsockname()[1]
        answering = threading.Thread(target=answer, args=(peer, kind, count))
        if kind == "nobody":
            peer.close()
        else:
            peer.settimeout(SECONDS)
            answering.start()
        file = rules(tmp_path, f"127.0.0.1:{port}", "timeout = '100ms'")
        program = [sys.executable, "-c", SCRIPT, "in", count, 0.01]
        done = subprocess.run(
            collect(tmp_path, "end", file, *program), check=True, capture_output=True, text=True
        )
        if kind != "nobody":
            answering.join()
    table = events(tmp_path / "end.log")
    lost = json.loads(done.stderr)["lost"]
    assert lost == count
    assert (len(of(table, "in")), len(of(table, "in rtt"))) == (count, 0)


def answer(peer: socket.socket, kind: str, count: int) -> None:
    """Too late, though the program still runs; or at once, from another address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        for _ in range(count):
            question, end = peer.recvfrom(100)
            if kind == "late":
                threading.Event().wait(0.15)
            sender = peer if kind == "late" else other
            sender.sendto(question.replace(b"?", b"!", 1), end)


# Between two hosts: what comes from the end goes on later, what comes back at once.
RELAY = """
import select, socket, sys, time
delay = float(sys.argv[1])
near, far = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
near.bind(("10.77.2.2", 9100))
far.connect(("10.77.1.1", 9100))
print(flush=True)
waiting = []
while True:
    rest = max(0, waiting[0][0] - time.monotonic()) if waiting else None
    ready = select.select([near, far], [], [], rest)[0]
    if near in ready:
        question, end = near.recvfrom(100)
        waiting.append((time.monotonic() + delay, question))
    if far in ready:
        near.sendto(far.recv(100), end)
    while waiting and waiting[0][0] <= time.monotonic():
        far.send(waiting.pop(0)[1])
"""


def ip(words: str) -> None:
    subprocess.run(["ip", *words.split()], check=True)


@pytest.fixture
def hosts() -> Iterator[list[list[str]]]:
    """Start, relay and end: what runs a command there, each in a network namespace of its own.
    Kernels without netem have no other delay."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and ip")
    names = [f"fox-{os.getpid()}-{side}" for side in ("start", "relay", "end")]
    start, relay, end = names
    try:
        for name in names:
            ip(f"netns add {name}")
        for network, side in ((1, start), (2, end)):
            ip(f"-n {side} link add fox{network} type veth peer name fox{network} netns {relay}")
            for host, name in ((1, side), (2, relay)):
                ip(f"-n {name} addr add 10.77.{network}.{host}/24 dev fox{network}")
                ip(f"-n {name} link set fox{network} up")
        yield [["ip", "netns", "exec", name] for name in names]
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False)


def test_a_delay_between_two_hosts_is_seen(hosts: list[list[str]], tmp_path: Path) -> None:
    count = 200
    python = [sys.executable, "-c"]
    at_start, at_relay, at_end = hosts
    (there := tmp_path / "there").mkdir()
    far, near = rules(there, "10.77.1.1:9100"), rules(tmp_path, "10.77.2.2:9100")
    relaying = subprocess.Popen(
        [*at_relay, *python, RELAY, str(DELAY_MS / 1000)], stdout=subprocess.PIPE
    )
    answering = subprocess.Popen(
        at_start + collect(tmp_path, "start", far, *python, SCRIPT, "out", 1, 60)
    )
    try:
        assert relaying.stdout is not None
        relaying.stdout.readline()
        wait_for((tmp_path / "start.log").exists)
        wait_for(lambda: b"out answered" in (tmp_path / "start.log").read_bytes())
        done = subprocess.run(
            at_end + collect(tmp_path, "end", near, *python, SCRIPT, "in", count, 0.001),
            check=True,
            capture_output=True,
            text=True,
        )
    finally:
        answering.send_signal(signal.SIGTERM)
        answering.wait(SECONDS)
        relaying.kill()
        relaying.wait()
    assert json.loads(done.stderr)["lost"] == 0
    asked = [3 * number for number in range(count)]
    trips = check(events(tmp_path / "end.log"), asked, 0)["payload"].to_numpy()
    assert (trips >= DELAY_MS * 1_000_000).all()
    assert trips.min() < 3 * DELAY_MS * 1_000_000
    answered = of(events(tmp_path / "start.log"), "out answered")
    assert sorted(answered["payload"].to_pylist()) == asked


def test_what_got_no_answer_is_not_said_to_be_lost_to_full_rings(tmp_path: Path) -> None:
    file = rules(tmp_path, f"127.0.0.1:{free_port()}", "timeout = '100ms'")
    command = collect(tmp_path, "end", file, sys.executable, "-c", SCRIPT, "in", 3, 0)
    command.remove("--json")
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stderr == "tare-log: 3 round trips got no answer in time\n"
    told = stats(tmp_path / "end.log")
    assert (told["lost"], told["unanswered"]) == (3, 3)
    assert {channel["channel"]: channel["lost"] for channel in told["channels"]} == {
        "in": 0,
        "in rtt": 3,
    }
