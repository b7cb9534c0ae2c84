# SPDX-License-Identifier: Apache-2.0
"""One end of a link is killed in the middle of a stream: the other one gets every byte that was
sent before, and then sees the end or a reset. How long that takes is measured by
`python -m tests.soak link-kills`."""

import pytest
from tests.link import killed, linked

TIMES = 3


@pytest.mark.parametrize("wait", killed.WAITS)
def test_every_byte_comes_that_a_killed_sender_has_sent(wait: str) -> None:
    for _ in range(TIMES):
        seen = killed.kill("sends", wait, killed.IN_RING)
        assert seen.received >= seen.sent >= killed.BEFORE
        assert seen.what in ("end", "ECONNRESET")
        counts = seen.survivor.counts
        assert (counts["links"], counts["reset"]) == (1, 0)
        assert counts["ring_bytes_received"] >= linked.SHARE * seen.received


@pytest.mark.parametrize("wait", killed.WAITS)
def test_bytes_come_that_a_killed_sender_has_taken_back(wait: str) -> None:
    for _ in range(TIMES):
        seen = killed.kill("sends", wait, killed.TAKEN_BACK)
        assert seen.received >= seen.sent > killed.BEFORE
        assert seen.what == "end"
        assert (seen.survivor.counts["links"], seen.survivor.counts["reset"]) == (1, 0)


@pytest.mark.parametrize("wait", killed.WAITS)
def test_stream_that_lost_bytes_has_no_regular_end(wait: str) -> None:
    seen = killed.kill("sends", wait, killed.GIVEN_BACK)
    assert seen.what == "ECONNRESET" or seen.received >= seen.sent


@pytest.mark.parametrize("wait", killed.WAITS)
def test_sender_sees_that_its_receiver_was_killed(wait: str) -> None:
    for _ in range(TIMES):
        seen = killed.kill("receives", wait, 0)
        assert seen.sent >= seen.received >= killed.BEFORE
        assert seen.what in ("EPIPE", "ECONNRESET")
        assert seen.survivor.counts["links"] == 1
        assert seen.survivor.counts["ring_bytes_sent"] > 0
