# SPDX-License-Identifier: Apache-2.0
"""Connections that iptables redirects, as service meshes do: the ends see different addresses."""

import shutil

import pytest
from tests.link import linked
from tests.rights import may_make_namespaces

PYTHON = "/usr/bin/python3"
NETWORK = """
set -e
ip link set lo up
iptables -t nat -A OUTPUT -p tcp --dport 80 -j REDIRECT --to-ports 8080
ip6tables -t nat -A OUTPUT -p tcp --dport 80 -j REDIRECT --to-ports 8080
exec "$@"
"""
PROGRAM = """
import socket, sys
def exchange(family, own, address, port):
    both = own == "::"
    listener = socket.create_server((own, 8080), family=family, dualstack_ipv6=both)
    near = socket.create_connection((address, port))
    far, _ = listener.accept()
    assert (near.getpeername()[1], far.getsockname()[1]) == (port, 8080)
    for _ in range(50):
        near.sendall(b"question")
        assert far.recv(8) == b"question"
        far.sendall(b"answer")
        assert near.recv(6) == b"answer"
for port in (80, 8080):
    exchange(socket.AF_INET, "127.0.0.1", "127.0.0.1", port)
    exchange(socket.AF_INET6, "::1", "::1", port)
    exchange(socket.AF_INET6, "::", "127.0.0.1", port)
"""


def test_redirected_connections_are_linked() -> None:
    if not may_make_namespaces():
        pytest.skip("network namespaces cannot be made here")
    if shutil.which("iptables") is None or shutil.which("ip6tables") is None:
        pytest.skip("iptables is missing")
    program = ["sh", PYTHON, "-c", PROGRAM]
    run = linked.run("unshare", "--net", "sh", "-c", NETWORK, *program)
    if "iptables" in run.errors:
        pytest.skip(f"iptables cannot redirect here: {run.errors}")
    assert (run.code, run.errors) == (0, "")
    linked.assert_carried(run.counts, 12)
