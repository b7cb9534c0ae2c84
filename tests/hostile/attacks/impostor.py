# SPDX-License-Identifier: Apache-2.0
"""impostor.py SOCKET PID: hands over a segment that says that it is of process PID, and prints the
collector's answer."""

import os
import socket
import struct
import sys
from pathlib import Path

from tests.hostile.attacks.segment import Segment

path, pid = sys.argv[1:]
segment = Segment()
start = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
os.pwrite(segment.fd, struct.pack("<QI", start, int(pid)), 24)
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(path)
    socket.send_fds(connection, [b"\1"], [segment.fd])
    answer = connection.recv(1)
print(f"ready\n{answer!r}", flush=True)
sys.stdin.readline()
