# SPDX-License-Identifier: Apache-2.0
import pytest

from tare.lab.environments import netns


def test_two_interfaces_never_get_the_same_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(netns, "ip", lambda *_: "2: eth0    inet 10.213.0.29/30 brd 10.213.0.31\n")
    assert netns.free_pair(5) == ("10.213.0.21", "10.213.0.22")
    assert netns.free_pair(6) == ("10.213.0.25", "10.213.0.26")
    assert netns.free_pair(7) == ("10.213.0.33", "10.213.0.34")  # 7 is taken
    assert netns.free_pair((1 << 14) - 1) == ("10.213.255.253", "10.213.255.254")
    assert netns.free_pair(1 << 14) == ("10.213.0.1", "10.213.0.2")
