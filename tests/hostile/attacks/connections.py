# SPDX-License-Identifier: Apache-2.0
"""connections.py SOCKET: opens silent connections until the collector closes the first, and then
opens and closes others until its input ends."""

import socket
import sys
import threading

silent = []
for _ in range(400):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(sys.argv[1])
    silent.append(connection)
silent[0].recv(1)


def connect() -> None:
    while True:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.setblocking(False)
            connection.connect_ex(sys.argv[1])


threading.Thread(target=connect, daemon=True).start()
print("ready", flush=True)
sys.stdin.readline()
