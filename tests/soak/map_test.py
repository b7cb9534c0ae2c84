# SPDX-License-Identifier: Apache-2.0
from typing import Any

import pytest
from tests.soak.map import Counts, Ends, Memory, found, grown

MIB = 1 << 20


@pytest.mark.parametrize(
    ("later", "names"),
    [
        (Memory(100, 7 * MIB, 16 * MIB), []),
        (Memory(100, 7 * MIB, 18 * MIB), ["process"]),
        (Memory(100, 9 * MIB, 18 * MIB), ["kernel", "process"]),
        # Memory of new edges.
        (Memory(2148, 9 * MIB, 32 * MIB), []),
        (Memory(2148, 11 * MIB, 32 * MIB), ["kernel"]),
    ],
)
def test_memory_may_grow_with_edges_only(later: Memory, names: list[str]) -> None:
    before = Memory(100, 7 * MIB, 16 * MIB)
    assert [line.split(":")[0] for line in grown([before, before, before, later])] == names


def test_edges_of_several_namespaces_are_added_up() -> None:
    edge: dict[str, Any] = {
        "program": "soak-client-0",
        "role": "client",
        "protocol": "tcp",
        "local": "127.0.0.1",
        "peer": "127.0.0.1",
        "port": 20_000,
        "opened": 3,
        "closed": 2,
        "bytes_sent": 300,
        "bytes_received": 200,
        "packets_sent": 3,
        "packets_received": 2,
    }
    ends = Ends("soak-client-0", "client", "tcp", "127.0.0.1", "127.0.0.1", 20_000)
    edges = [edge | {"netns": 1}, edge | {"netns": 2}, edge | {"program": "nginx"}]
    assert found(edges) == {ends: Counts(6, 4, 600, 400, 0)}
