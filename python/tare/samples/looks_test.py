# SPDX-License-Identifier: Apache-2.0
"""What a reader is told of how samples were looked at."""

from tare.samples.looks import Look, Looks


def test_bins_are_told_with_their_bound() -> None:
    assert Looks({}, {}, {}, {}, Look({}, {}), {}).told() == ()
    (told,) = Looks({}, {}, {}, {}, Look({}, {}, 0.0123), {}).told()
    assert "distances between runs (KS) are within 0.012 of the exact ones" in told
