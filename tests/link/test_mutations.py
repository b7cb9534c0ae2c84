# SPDX-License-Identifier: Apache-2.0
"""No call on a link crashes or reads outside the ring, whatever the other end has changed."""

import pytest
from tests.link import mutations

SEEDS = (1, 2, 3)
NUMBER = 20_000


@pytest.mark.exhaustive
def test_calls_go_on_whatever_the_other_end_has_changed() -> None:
    for seed in SEEDS:
        links, resets = mutations.run(seed, NUMBER)
        assert links > 0
        assert resets > 0
