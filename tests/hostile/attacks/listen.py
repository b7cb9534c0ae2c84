# SPDX-License-Identifier: Apache-2.0
"""listen.py SOCKET: listens like a collector and prints what the first client sends."""

import array
import socket
import sys
from pathlib import Path

with socket.socket(socket.AF_UNIX) as listener:
    listener.bind(sys.argv[1])
    Path(sys.argv[1]).chmod(0o777)
    listener.listen()
    print("ready", flush=True)
    connection, _ = listener.accept()
    room = socket.CMSG_SPACE(array.array("i", [0]).itemsize)
    data, beside, _, _ = connection.recvmsg(16, room)
    print(f"{len(data)} bytes, {len(beside)} descriptors", flush=True)
