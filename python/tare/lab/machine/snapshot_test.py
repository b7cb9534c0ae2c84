# SPDX-License-Identifier: Apache-2.0
from tare.lab.machine.snapshot import Snapshot


def snapshot(*counts: tuple[str, int, str], **levels: float) -> Snapshot:
    found = Snapshot(levels=levels)
    for metric, value, of in counts:
        found.count(metric, value, of)
    return found


def test_increases_of_one_metric_add_up() -> None:
    before = snapshot(("received", 10, "eth0"), ("received", 5, "eth1"))
    after = snapshot(("received", 12, "eth0"), ("received", 9, "eth1"), memory=3.0)
    assert after.since(before) == {"received": 6, "memory": 3.0}


def test_what_only_one_moment_has_adds_nothing() -> None:
    before = snapshot(("received", 10, "eth0"), ("received", 500, "veth1"))
    after = snapshot(("received", 12, "eth0"), ("received", 900, "veth2"), ("sent", 1, "veth2"))
    assert after.since(before) == {"received": 2}


def test_a_counter_that_went_back_makes_its_metric_unknown() -> None:
    before = snapshot(("received", 2**32 - 1, "eth0"), ("received", 5, "eth1"), ("sent", 1, "eth0"))
    after = snapshot(("received", 100, "eth0"), ("received", 9, "eth1"), ("sent", 4, "eth0"))
    assert after.since(before) == {"sent": 3}
