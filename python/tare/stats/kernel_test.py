# SPDX-License-Identifier: Apache-2.0
"""Keys are in the order that NumPy puts them in."""

import numpy as np
import pytest

from tare.stats.kernel import sort


@pytest.mark.parametrize("kind", ["uint32", "uint64"])
@pytest.mark.parametrize("size", [0, 1, 1_000, 300_001])
@pytest.mark.parametrize("distinct", [3, 2**32])
def test_keys_are_sorted_in_place(kind: str, size: int, distinct: int) -> None:
    keys = np.random.default_rng(size).integers(0, distinct, size).astype(kind)
    expected = np.sort(keys)
    sort(keys)
    assert np.array_equal(keys, expected)


def test_keys_of_another_type_or_with_gaps_are_refused() -> None:
    with pytest.raises(TypeError, match="found int64"):
        sort(np.zeros(4, np.int64))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="in one piece"):
        sort(np.zeros(4, np.uint32)[::2])
