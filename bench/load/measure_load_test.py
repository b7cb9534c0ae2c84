# SPDX-License-Identifier: Apache-2.0
import numpy as np
from bench.load.measure import USERS, own_lag


def test_a_wait_for_a_busy_server_is_no_lag_of_the_generator() -> None:
    # A server that stalls answers the first requests at 1,000; two more are due at 10 and 20.
    intended = np.array([0] * USERS + [10, 20])
    start = np.array([0] * (USERS - 1) + [3, 1_000, 1_007])
    duration = np.array([1_000] * USERS + [5, 5])
    assert own_lag(intended, start, duration).tolist() == [0] * (USERS - 1) + [3, 0, 7]


def test_order_of_the_file_does_not_matter() -> None:
    intended = np.arange(40) * 100
    start, duration = intended + 1, np.full(40, 30)
    mixed = np.random.default_rng(1).permutation(40)
    assert own_lag(intended[mixed], start[mixed], duration[mixed]).tolist() == [1] * 40
