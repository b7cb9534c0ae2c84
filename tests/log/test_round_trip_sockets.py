# SPDX-License-Identifier: Apache-2.0
"""The sockets of round trips: whose they are, and what becomes of them."""

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from tests.log.conftest import TARE_LOG, dump
from tests.log.test_recover import segment_of
from tests.log.test_round_trips import SCRIPT, ask, collect, free_port, rules
from tests.waiting import SECONDS, wait_for


def both(folder: Path, rules: Path, script: str) -> "subprocess.CompletedProcess[str]":
    """A program that has starts and ends."""
    command = collect(folder, "both", rules, sys.executable, "-c", script)
    return subprocess.run(command, check=True, capture_output=True, text=True)


def test_a_start_gets_its_address_later(tmp_path: Path) -> None:
    """It is somebody else's at first, which is said once, and so is that it no longer is."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
        file = rules(tmp_path, f"127.0.0.1:{port}")
        said = tmp_path / "said"
        with said.open("w") as stderr:
            # Two channels of one program.
            two = f"from tare.log import Channel\nChannel('other').log(1)\n{SCRIPT}"
            file.write_text(file.read_text().replace("'out'", "'out|other'"))
            answering = subprocess.Popen(
                collect(tmp_path, "start", file, sys.executable, "-c", two, "out", 1, 60),
                stderr=stderr,
            )
        try:
            wait_for(lambda: "until the address works" in said.read_text())
            time.sleep(2.5)
            other.close()
            wait_for(lambda: "it works again" in said.read_text())
            totals = ask(tmp_path, file, 100, 0.005)
        finally:
            answering.send_signal(signal.SIGTERM)
            answering.wait(SECONDS)
    assert totals["lost"] == 0
    lines = said.read_text().splitlines()
    assert all(
        f"handlers fox-start and fox-end: address 127.0.0.1:{port}" in line for line in lines[:2]
    )
    assert len(lines) == 3, lines


def test_many_channels_have_one_thread(tmp_path: Path) -> None:
    """Ends and starts of one collector, and each of them gets its answers."""
    ports = [free_port() for _ in range(5)]
    file = tmp_path / "rules"
    file.write_text(
        "".join(
            f"[[rule]]\nchannel = '{side} {port} .*'\nhandler = 'fox-{kind}'\n"
            f"address = '127.0.0.1:{port}'\n"
            for port in ports
            for side, kind in (("out", "start"), ("in", "end"))
        )
    )
    script = f"""
import os, time
from tare.log import Channel
names = [f"{{port}} {{number}}" for port in {ports} for number in range(30)]
starts = [Channel(f"out {{name}}") for name in names]
ends = [Channel(f"in {{name}}") for name in names]
for channels in (starts, ends, ends, ends):
    for channel in channels:
        channel.log(7)
        time.sleep(0.001)
print(sum(line.startswith("Threads:") and int(line.split()[1])
          for line in open(f"/proc/{{os.getppid()}}/status")))
"""
    done = both(tmp_path, file, script)
    assert int(done.stdout) < 10
    assert json.loads(done.stderr)["lost"] == 0
    answers = [row.channel for row in dump(tmp_path / "both.log") if row.channel.endswith("rtt")]
    assert Counter(Counter(answers).values()) == {3: 150}


def test_programs_of_one_address_share_it(tmp_path: Path) -> None:
    """As workers of one server do: while one of them runs, questions are answered."""
    port = free_port()
    file = rules(tmp_path, f"127.0.0.1:{port}")
    file.write_text(file.read_text().replace("'out'", "'out|other'"))
    two = f"{SCRIPT}\nChannel('other').log(1)"
    workers = [[sys.executable, "-c", two, "out", str(count), "0.1"] for count in (1, 600)]
    shell = " & ".join(shlex.join(worker) for worker in workers)
    shell = f"trap 'kill $(jobs -p)' TERM; {shell} & wait"
    answering = subprocess.Popen(
        collect(tmp_path, "start", file, "bash", "-c", shell),
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_for((start := tmp_path / "start.log").exists)
        wait_for(lambda: start.read_bytes().count(b'"out answered"') == 2)
        wait_for(lambda: b'"finished"' in start.read_bytes())
        totals = ask(tmp_path, file, 100, 0.005)
    finally:
        answering.send_signal(signal.SIGTERM)
        _, said = answering.communicate(timeout=SECONDS)
    assert totals["lost"] == 0
    assert len(said.splitlines()) == 1, said
    answered = [row for row in dump(start) if row.channel.endswith("answered")]
    assert len(answered) == 100


def test_what_is_recovered_answers_nobody(tmp_path: Path) -> None:
    """Though the memory says that questions come to an address of this host."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        file = rules(tmp_path, f"127.0.0.1:{other.getsockname()[1]}")
        door = tmp_path / "socket"
        command = [TARE_LOG, "collect", "--socket", str(door), "--rules", str(file)]
        collector = subprocess.Popen(
            [*command, "--out", str(tmp_path / "first.log")], stderr=subprocess.DEVNULL
        )
        wait_for(door.exists)
        program = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, "out", "1000", "0.01"],
            env=os.environ | {"TARE_LOG": str(door)},
        )
        try:
            wait_for((first := tmp_path / "first.log").exists)
            wait_for(lambda: b"out answered" in first.read_bytes())
            collector.kill()
            collector.wait()
            again = [TARE_LOG, "recover", str(segment_of(program.pid)), "--out"]
            done = subprocess.run(
                [*again, tmp_path / "left.log"], check=True, capture_output=True, text=True
            )
        finally:
            program.kill()
            program.wait()
            collector.kill()
            collector.wait()
    assert done.stderr == ""


def test_a_socket_that_its_program_shut_down_costs_nothing(tmp_path: Path) -> None:
    """It is ready for ever; the collector waits for the other sockets all the same."""
    ports = [free_port(), free_port()]
    file = tmp_path / "rules"
    file.write_text(
        "".join(
            f"[[rule]]\nchannel = '{name}'\nhandler = 'fox-{kind}'\naddress = '127.0.0.1:{port}'\n"
            for name, kind, port in (
                ("gone", "end", ports[0]),
                ("out", "start", ports[1]),
                ("in", "end", ports[1]),
            )
        )
    )
    script = f"""
import os, socket, time
from tare.log import Channel
gone, out, asking = (Channel(name) for name in ("gone", "out", "in"))
gone.log(1)
out.log(1)
time.sleep(0.2)
for name in os.listdir("/proc/self/fd"):
    try:
        lent = socket.socket(fileno=os.dup(int(name)))
    except OSError:
        continue
    if lent.getpeername()[1] == {ports[0]}:
        lent.shutdown(socket.SHUT_RDWR)
def ran():
    fields = open(f"/proc/{{os.getppid()}}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
before = ran()
for _ in range(20):
    asking.log(1)
    time.sleep(0.1)
print(ran() - before)
"""
    done = both(tmp_path, file, script)
    assert float(done.stdout) < 0.5
    rows = [row for row in dump(tmp_path / "both.log") if row.channel == "in rtt"]
    assert len(rows) == 20
