# SPDX-License-Identifier: Apache-2.0
"""gone.py SOCKET: connects by a process that exits, and prints its PID. When its input ends, sends
a byte and prints when the collector has answered or closed the connection."""

import os
import socket
import sys
from contextlib import suppress

print("ready", flush=True)
with socket.socket(socket.AF_UNIX) as connection:
    pid = os.fork()
    if not pid:
        connection.connect(sys.argv[1])
        os._exit(0)
    os.waitpid(pid, 0)
    print(pid, flush=True)
    sys.stdin.readline()
    with suppress(BrokenPipeError):
        connection.send(b"?")
        connection.recv(1)
    print("answered", flush=True)
