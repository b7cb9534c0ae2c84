# SPDX-License-Identifier: Apache-2.0
"""The live view on a terminal."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.map.hosts import Host
from tests.map.test_tcp import SERVER
from tests.waiting import SECONDS, wait_for

from tare.native import native

Hosts = tuple[Host, Host]
Program = Callable[[str], Path]

ROWS, COLUMNS = 200, 160

# What moves the cursor or sets colours. Leaving the screen of the view is a word.
CONTROLS = re.compile(r"\x1b\[(?!\?1049l)[0-9;?]*[A-Za-z]")
LEFT = r"\x1b\[\?1049l"


class Terminal:
    """What a program writes to a terminal, and the keys for it."""

    def __init__(self, process: "subprocess.Popen[bytes]", fd: int) -> None:
        self.process = process
        self.fd = fd
        self.text = ""
        self.rows = ROWS

    def press(self, keys: str) -> None:
        os.write(self.fd, keys.encode())

    def screen(self) -> str:
        """All of it: only cells that change are written, unless the size changes."""
        self.rows = ROWS + (self.rows + 1) % ROWS
        size = struct.pack("HHHH", self.rows, COLUMNS, 0, 0)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, size)
        return self.wait_for("tare map: .*PROGRAM.*(scroll|clears)")

    def wait_for(self, words: str) -> str:
        """What was written, until words that match these were written since the last call."""
        pattern = words.replace(" ", r"\s+")
        while not re.search(pattern, CONTROLS.sub(" ", self.text), re.DOTALL):
            assert select.select([self.fd], [], [], SECONDS)[0], f"no {words} in {self.text!r}"
            self.text += os.read(self.fd, 65536).decode(errors="replace")
        written, self.text = CONTROLS.sub(" ", self.text), ""
        return " ".join(written.split())


@contextmanager
def on_a_terminal(*options: str) -> Iterator[Terminal]:
    main, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    process = subprocess.Popen(
        [native("bin", "tare-map"), *options],
        stdin=other,
        stdout=other,
        stderr=other,
        env=os.environ | {"TERM": "xterm-256color"},
        # The size is that of this terminal, not that of the one that the tests run on.
        start_new_session=True,
    )
    os.close(other)
    try:
        yield Terminal(process, main)
    finally:
        process.kill()
        process.wait()
        os.close(main)


def test_view_shows_a_new_edge_and_finds_it(hosts: Hosts, program: Program) -> None:
    server = hosts[1].start(program("shop"))
    client = hosts[0].start(program("browser"))
    port = int(server.ask("listen", SERVER["4"]))
    with on_a_terminal("--interval", "50ms") as terminal:
        terminal.wait_for(r"tare map: \d+ edges.*PROGRAM.*q quit")
        client.ask("open", "one", SERVER["4"], port)
        wait_for(lambda: re.search(f"browser \\S+ -> {SERVER['4']} {port} 1 ", terminal.screen()))
        terminal.press(f"/{port}\r")
        wait_for(lambda: f"2 edges with {port}" in terminal.screen())
        terminal.press("q")
        # The screen from before is back.
        terminal.wait_for(LEFT)
        assert terminal.process.wait(timeout=SECONDS) == 0


def test_view_ends_by_control_c() -> None:
    with on_a_terminal() as terminal:
        terminal.wait_for("PROGRAM")
        terminal.press("\x03")
        terminal.wait_for(LEFT)
        assert terminal.process.wait(timeout=SECONDS) == 0


def test_a_duration_prints_a_table_on_a_terminal() -> None:
    with on_a_terminal("--duration", "10ms") as terminal:
        terminal.wait_for("PROGRAM LOCAL")
        assert terminal.process.wait(timeout=SECONDS) == 0
