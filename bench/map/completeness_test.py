# SPDX-License-Identifier: Apache-2.0
from typing import Any

import pytest
from bench.map.completeness import Exchanged, Shares, expected, percent, shares
from bench.map.network import CLIENT

SERVICE = "198.18.0.1"


def edge(role: str, connections: int, length: int, **changes: Any) -> dict[str, Any]:
    local, peer = (CLIENT, SERVICE) if role == "client" else (SERVICE, CLIENT)
    return {
        "role": role,
        "local": local,
        "peer": peer,
        "port": 9000,
        "found": 0,
        "opened": connections,
        "closed": connections,
        "bytes_sent": length,
        "bytes_received": length,
        "bytes_known": True,
    } | changes


WANTED = expected({f"{SERVICE}:9000": Exchanged(10, 640)})
EXACT = [edge("client", 10, 640), edge("server", 10, 640)]


def test_exact_counts_at_both_ends_are_100_percent() -> None:
    assert shares(EXACT, WANTED) == Shares(100, 100, 100)


def test_old_connections_count_too() -> None:
    old = [edge("client", 3, 640, found=7, closed=10), EXACT[1]]
    assert shares(old, WANTED).connections == 100


@pytest.mark.parametrize("connections", [9, 11])
def test_missing_and_surplus_connections_lower_the_share(connections: int) -> None:
    assert shares([edge("client", connections, 640), EXACT[1]], WANTED).connections == 95


def test_connections_whose_end_is_missing_lower_the_share() -> None:
    assert shares([edge("client", 10, 640, closed=6), EXACT[1]], WANTED).connections == 90


def test_edge_that_the_load_did_not_make_lowers_the_share_of_edges() -> None:
    wrong = edge("server", 1, 64, port=40000)
    assert shares([*EXACT, wrong], WANTED).edges == pytest.approx(200 / 3)


def test_missing_edge_has_no_counts() -> None:
    assert shares(EXACT[:1], WANTED) == Shares(50, 50, 50)


def test_the_same_edge_twice_is_wrong() -> None:
    assert shares([*EXACT, EXACT[0]], WANTED).edges < 100


def test_a_surplus_does_not_make_up_for_a_gap() -> None:
    assert percent([(5, 10), (15, 10)]) == 50


def test_unknown_bytes_have_no_share() -> None:
    silent = [edge("client", 10, 0, bytes_known=False), EXACT[1]]
    assert shares(silent, WANTED).bytes is None


def test_udp_has_no_connections() -> None:
    wanted = expected({f"{SERVICE}:9000": Exchanged(0, 640)})
    assert shares([edge("client", 0, 640), edge("server", 0, 640)], wanted).connections is None
