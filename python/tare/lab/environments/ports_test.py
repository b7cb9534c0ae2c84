# SPDX-License-Identifier: Apache-2.0
import socket

from tare.lab.environments.ports import free_port, why_taken


def test_why_a_port_cannot_be_had() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        assert why_taken("127.0.0.1", port) == "Address already in use"
    assert why_taken("127.0.0.1", port) is None
    # An address for documentation, which no machine has: nobody's use of the port is to blame.
    assert why_taken("192.0.2.1", port) == "Cannot assign requested address"


def test_no_port_is_given_twice() -> None:
    assert free_port("127.0.0.1") != free_port("127.0.0.1")
