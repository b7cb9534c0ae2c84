# SPDX-License-Identifier: Apache-2.0
"""slow_to_close.py SOCKET: hands over TCP sockets with unsent bytes and SO_LINGER, so that whoever
closes the last descriptor of one waits: as a segment, beside one, behind one, and over a connection
that is closed at once or says nothing else. Then it waits."""

import os
import socket
import struct
import sys
import threading

from tests.hostile.attacks.segment import Segment

SECONDS = 3600
peers: list[socket.socket] = []
connections = []
with socket.create_server(("127.0.0.1", 0)) as listener:
    address = listener.getsockname()

    def slow() -> socket.socket:
        """Its peer reads nothing."""
        unread = socket.create_connection(address)
        peers.append(listener.accept()[0])
        unread.setblocking(False)
        try:
            while True:
                unread.send(bytes(1 << 16))
        except BlockingIOError:
            unread.setblocking(True)
        unread.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, SECONDS))
        return unread

    for way in ("closed", "segment", "beside", "behind", "after", "many"):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(sys.argv[1])
        connections.append(connection)
        segment = Segment()
        for _ in range(20 if way == "many" else 1):
            full_socket = slow()
            sent = {"beside": [segment.fd, full_socket.fileno()], "behind": [segment.fd]}
            try:
                socket.send_fds(connection, [b"\1"], sent.get(way, [full_socket.fileno()]))
                if way in ("behind", "after"):
                    socket.send_fds(connection, [b"\1"], [full_socket.fileno()])
            except BrokenPipeError:
                pass  # it is received no more
            # Whoever closes last waits, which may be this process.
            threading.Thread(target=os.close, args=(full_socket.detach(),), daemon=True).start()
            if way == "closed":
                connection.close()
        os.close(segment.fd)
print("ready", flush=True)
sys.stdin.readline()
