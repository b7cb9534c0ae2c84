# SPDX-License-Identifier: Apache-2.0
"""`tare log top` beside a program that logs."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.log.conftest import TARE_LOG
from tests.waiting import SECONDS, wait_for

FOREVER = 1 << 40


@dataclass(frozen=True)
class Growing:
    file: Path
    collector: subprocess.Popen[bytes]


@pytest.fixture
def growing(compiled: Callable[[str], Path], tmp_path: Path) -> Iterator[Growing]:
    """A file into which a program logs requests, some of which are lost."""
    file = tmp_path / "events.log"
    program = [str(compiled("nested")), "2", str(FOREVER), "2000", "drop"]
    command = [TARE_LOG, "run", "--out", str(file), "--", *program]
    process = subprocess.Popen(command, env=os.environ | {"TARE_LOG_RING": "64K"})
    try:
        wait_for(lambda: file.stat().st_size >= 10_000)
        yield Growing(file, process)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(SECONDS)


def test_a_line_a_second_until_ctrl_c(growing: Growing) -> None:
    command = [TARE_LOG, "top", str(growing.file), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as top:
        assert top.stdout is not None
        told = [json.loads(top.stdout.readline()) for _ in range(2)]
        top.send_signal(signal.SIGINT)
        assert top.wait(SECONDS) == 0
    for reading in told:
        assert reading["seconds"] > 0
        assert reading["programs"] == 1
        channels = {channel["channel"]: channel for channel in reading["channels"]}
        events = sum(channel["events_per_second"] for channel in channels.values())
        unseen = reading["unseen"] / reading["seconds"]
        assert events + unseen == pytest.approx(reading["events_per_second"])
        assert events > 0
        stored = sum(channel["bytes_per_second"] for channel in channels.values())
        # Blocks that tell of losses alone are no channel's, nor are those not counted.
        assert 0 < stored <= reading["bytes_per_second"] * 1.000001
        rates = {name: channel["events_per_second"] for name, channel in channels.items()}
        # What is lost is lost of all.
        assert rates["work tin"] / rates["request>"] == pytest.approx(3, rel=0.2)
        assert rates["text"] / rates["request>"] == pytest.approx(1, rel=0.2)


def test_losses_are_known_by_channel(growing: Growing) -> None:
    """At once, from the program's memory: the file has them by channel only at the end."""
    command = [TARE_LOG, "top", str(growing.file), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as top:
        assert top.stdout is not None
        for line in top.stdout:
            told = json.loads(line)
            if told["lost_per_second"]:
                break
            # A collector that is held up loses the events of a ring as small as this.
            growing.collector.send_signal(signal.SIGSTOP)
            time.sleep(0.2)
            growing.collector.send_signal(signal.SIGCONT)
        top.terminate()
    lost = {channel["channel"]: channel["lost_per_second"] for channel in told["channels"]}
    assert lost["work tin"] > lost["request>"] > 0
    assert lost.get("check in", 0) == 0


def test_a_page_on_a_terminal(growing: Growing) -> None:
    """It takes the place of what was there, and gives it back."""
    main, terminal = pty.openpty()
    with subprocess.Popen(
        [TARE_LOG, "top", str(growing.file)], stdin=terminal, stdout=terminal
    ) as top:
        os.close(terminal)
        shown = b""
        while shown.count(b"events/s") < 3:
            shown += os.read(main, 1 << 16)
        os.write(main, b"q")
        assert top.wait(SECONDS) == 0
        while not shown.endswith(b"\x1b[?1049l"):
            shown += os.read(main, 1 << 16)
    os.close(main)
    assert shown.startswith(b"\x1b[?1049h")
    assert b"1 program" in shown
    assert b"request>" in shown


def test_names_do_not_steer_the_terminal(tmp_path: Path) -> None:
    file = tmp_path / "events.log"
    script = """
import time
from tare.log import Channel
channel = Channel("h\\x1b[2J\\x9b\\u202eostile")
while True:
    channel.log(1)
    time.sleep(0.01)
"""
    command = [TARE_LOG, "run", "--out", str(file), "--", sys.executable, "-c", script]
    with subprocess.Popen(command) as process:
        wait_for(lambda: b"ostile" in file.read_bytes())
        top = [TARE_LOG, "top", str(file), "--once"]
        shown = subprocess.run(top, check=True, capture_output=True, text=True).stdout
        process.terminate()
    assert r"h\u{1b}[2J\u{9b}\u{202e}ostile" in shown
    assert not set(shown) & set("\x1b\x9b\u202e")


def test_a_file_that_nobody_writes_to(compiled: Callable[[str], Path], tmp_path: Path) -> None:
    file = tmp_path / "events.log"
    program = [str(compiled("nested")), "1", "10"]
    subprocess.run([TARE_LOG, "run", "--out", str(file), "--", *program], check=True)
    with subprocess.Popen([TARE_LOG, "top", str(file)], stdout=subprocess.PIPE, text=True) as top:
        assert top.stdout is not None
        lines = [top.stdout.readline() for _ in range(15)]
        top.terminate()
        assert top.wait(SECONDS) == 0
    heads = [line for line in lines if "program" in line]
    assert heads[0].startswith("0 programs  0 events/s")
    assert "no collector writes to it" not in heads[0]
    assert "no collector writes to it" in heads[-1]
