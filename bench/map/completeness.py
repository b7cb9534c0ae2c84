# SPDX-License-Identifier: Apache-2.0
"""What a map has of the load, in percent of what the load generator did."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.map.network import CLIENT

Key = tuple[str, str, str, int]
"""Role, local address, peer address and port of an edge."""


@dataclass(frozen=True)
class Exchanged:
    """Between the client and one service."""

    connections: int
    bytes: int
    """Each way."""


@dataclass(frozen=True)
class Shares:
    """Percent: 100 only if every edge has the exact count. None: the method has no such count."""

    edges: float
    connections: float | None
    bytes: float | None


def expected(services: Mapping[str, Exchanged]) -> dict[Key, Exchanged]:
    """Both ends of what was exchanged with each service ("address:port")."""
    edges = {}
    for service, exchanged in services.items():
        address, port = service.rsplit(":", 1)
        edges["client", CLIENT, address, int(port)] = exchanged
        edges["server", address, CLIENT, int(port)] = exchanged
    return edges


def shares(edges: Sequence[Mapping[str, Any]], wanted: Mapping[Key, Exchanged]) -> Shares:
    """Of the edges in the load's namespaces when all its connections have ended."""
    keys = [(edge["role"], edge["local"], edge["peer"], edge["port"]) for edge in edges]
    found = dict(zip(keys, edges, strict=True))
    wrong = len(keys) - len(found.keys() & wanted.keys())
    of_edges = percent([(len(found.keys() & wanted.keys()), len(wanted) + wrong)])
    # What counts bytes counts ends of connections, too.
    counts_ends = all(edge["bytes_known"] for edge in edges)
    connections, closed, sent, received = [], [], [], []
    for key, exchanged in wanted.items():
        edge = found.get(key, {})
        opened = edge.get("found", 0) + edge.get("opened", 0)
        connections.append((opened, exchanged.connections))
        closed.append((edge.get("closed", 0), exchanged.connections))
        sent.append((edge.get("bytes_sent", 0), exchanged.bytes))
        received.append((edge.get("bytes_received", 0), exchanged.bytes))
    has_connections = any(exchanged.connections for exchanged in wanted.values())
    return Shares(
        of_edges,
        percent([*connections, *(closed if counts_ends else [])]) if has_connections else None,
        percent([*sent, *received]) if counts_ends else None,
    )


def percent(counts: Iterable[tuple[int, int]]) -> float:
    """Of what was expected, in pairs (found, expected). Surplus in one pair never makes up for a
    gap in another: both lower the result."""
    pairs = list(counts)
    right = sum(max(0, wanted - abs(wanted - found)) for found, wanted in pairs)
    surplus = any(found and not wanted for found, wanted in pairs)
    total = sum(wanted for _, wanted in pairs)
    return 100 * right / total if total and not surplus else 0.0
