# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest
from bench.map.completeness import Exchanged, Shares, expected
from bench.map.load import Load, sending, serving
from bench.map.network import network
from bench.map.peers import established, listed, shares_of, tracked, watching
from tests.rights import may_make_namespaces
from tests.waiting import SECONDS, wait_for

SS = """\
tcp   ESTAB 0      0      198.18.0.100:40000       198.18.0.1:9000
\t cubic wscale:7,7 rto:204 rtt:0.1/0.05 bytes_sent:64
tcp   ESTAB 0      0      [::ffff:198.18.0.1]:9000 [::ffff:198.18.0.100]:40000
udp   ESTAB 0      0      198.18.0.100%tb1c:40001  198.18.0.1:9000
udp   UNCONN 0     0      198.18.0.1:9000          *:*
"""
CONNTRACK = """\
    [NEW] tcp      6 120 SYN_SENT src=198.18.0.100 dst=198.18.0.1 sport=40000 dport=9000 \
[UNREPLIED] src=198.18.0.1 dst=198.18.0.100 sport=9000 dport=40000
 [UPDATE] tcp      6 60 SYN_RECV src=198.18.0.100 dst=198.18.0.1 sport=40000 dport=9000 \
src=198.18.0.1 dst=198.18.0.100 sport=9000 dport=40000
    [NEW] udp      17 30 src=198.18.0.100 dst=198.18.0.1 sport=40001 dport=9000 [UNREPLIED] \
src=198.18.0.1 dst=198.18.0.100 sport=9000 dport=40001
conntrack v1.4.7 (conntrack-tools): 3 flow events have been shown.
"""
BPFTRACE = """\
Attaching 2 probes...
@[198.18.0.100, 198.18.0.1, 40000, 9000]: 2
@[198.18.0.1, 198.18.0.100, 9000, 40000]: 2
@[127.0.0.1, 127.0.0.1, 41000, 80]: 9
printed
"""
CLIENT_END = ("198.18.0.100", "198.18.0.1", 40000, 9000)
SERVER_END = ("198.18.0.1", "198.18.0.100", 9000, 40000)
SERVICE = "198.18.0.1:9000"


def test_sockets_in_listings_are_flows() -> None:
    udp = ("198.18.0.100", "198.18.0.1", 40001, 9000)
    assert listed(SS + SS) == {CLIENT_END, SERVER_END, udp}


def test_events_of_conntrack_are_flows_from_the_client() -> None:
    assert tracked(CONNTRACK, is_server=False)[0] == CLIENT_END
    assert tracked(CONNTRACK, is_server=True)[0] == SERVER_END
    assert len(tracked(CONNTRACK, is_server=True)) == 2


def test_counts_of_bpftrace_are_of_the_load_only() -> None:
    assert [*established(BPFTRACE)] == [(CLIENT_END, 2), (SERVER_END, 2)]


def test_what_was_found_is_a_share_of_the_load() -> None:
    wanted = expected({SERVICE: Exchanged(4, 640)})
    assert shares_of([(CLIENT_END, 4), (SERVER_END, 4)], wanted) == Shares(100, 100, None)
    assert shares_of([(CLIENT_END, 2)], wanted) == Shares(50, 25, None)
    assert shares_of([], wanted) == Shares(0, 0, None)


def test_datagrams_have_edges_and_no_connections() -> None:
    wanted = expected({SERVICE: Exchanged(0, 640)})
    assert shares_of([(CLIENT_END, 1)], wanted) == Shares(50, None, None)


@pytest.mark.parametrize(
    ("transport", "shares"),
    # A server's socket of UDP has no peer.
    [("tcp", Shares(100, 100, None)), ("udp", Shares(50, None, None))],
)
def test_ss_finds_sockets_that_stay(tmp_path: Path, transport: str, shares: Shares) -> None:
    if not may_make_namespaces():
        pytest.skip("network namespaces need root")
    load = Load(transport, 200, services=4, connections=40)
    kept = Exchanged(10 if transport == "tcp" else 0, 0)
    wanted = expected(dict.fromkeys(load.addresses()[0], kept))
    with (
        network() as ends,
        serving(ends, load, tmp_path, SECONDS),
        watching("ss", ends, tmp_path) as peer,
        sending(ends, load, tmp_path, SECONDS),
    ):
        wait_for(lambda: peer.found(wanted) == shares, "all sockets")
        assert peer.share(0.01) >= 0
