# SPDX-License-Identifier: Apache-2.0
"""The time from the start of `tare map` to its first screen."""

import fcntl
import os
import pty
import re
import select
import socket
import struct
import subprocess
import sys
import termios
import time

from bench.map.load import CellError

ROWS, COLUMNS = 1_000, 200
"""Room for all edges of this machine: the view has no room for more than the screen."""
CONTROLS = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")
END_S = 30


def first_screens(number: int) -> list[float]:
    """Seconds from each start until the view shows a connection that was open before."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
        with socket.create_connection(address), listener.accept()[0]:
            return [first_screen(address[1]) for _ in range(number)]


def first_screen(port: int) -> float:
    """As a user starts it, without an option."""
    main, other = pty.openpty()
    fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    shown = re.compile(rb"127\.0\.0\.1\s+%d\s" % port)
    begin = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "tare", "map"],
        stdin=other,
        stdout=other,
        stderr=other,
        env=os.environ | {"TERM": "xterm-256color"},
        start_new_session=True,
    )
    os.close(other)
    try:
        text = b""
        while not shown.search(CONTROLS.sub(b" ", text)):
            left = begin + END_S - time.monotonic()
            if left <= 0 or not select.select([main], [], [], left)[0]:
                raise CellError(f"tare map: no screen within {END_S} s")
            text += read(main)
        return time.monotonic() - begin
    finally:
        process.kill()
        process.wait()
        os.close(main)


def read(terminal: int) -> bytes:
    """What the program has written; raises CellError if it has exited."""
    try:
        return os.read(terminal, 65536)
    except OSError as error:
        raise CellError("tare map exited without a screen") from error
