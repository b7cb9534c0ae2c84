# SPDX-License-Identifier: Apache-2.0
from collections.abc import Sequence

import numpy as np
import pytest
from scipy.stats import norm

from tare.stats.interim_analysis import false_alarm_rate
from tare.stats.permutation import sign_flip


# Armitage, McPherson and Rowe (1969), table 2, at a nominal level of 5 % and of 1 %.
@pytest.mark.parametrize(
    ("looks", "at_5_percent", "at_1_percent"),
    [
        (1, 0.050, 0.010),
        (2, 0.083, 0.018),
        (3, 0.107, 0.024),
        (4, 0.126, 0.029),
        (5, 0.142, 0.033),
        (10, 0.193, 0.047),
        (20, 0.248, 0.064),
        (50, 0.320, 0.088),
    ],
)
def test_the_published_table(looks: int, at_5_percent: float, at_1_percent: float) -> None:
    evenly = [8 * look for look in range(1, looks + 1)]
    assert false_alarm_rate(evenly, 0.05) == pytest.approx(at_5_percent, abs=6e-4)
    assert false_alarm_rate(evenly, 0.01) == pytest.approx(at_1_percent, abs=6e-4)


@pytest.mark.parametrize("looks", [(8, 9), (6, 60), (8, 16, 40), (1000, 1001)])
def test_simulated_walks_of_any_looks(looks: Sequence[int]) -> None:
    generator = np.random.default_rng(1)
    experiments = 400_000
    steps = np.sqrt(np.diff([0, *looks]))
    walks = np.cumsum(generator.standard_normal((experiments, len(looks))) * steps, axis=1)
    beyond = np.abs(walks) / np.sqrt(looks) > norm.ppf(0.975)
    share = float(beyond.any(axis=1).mean())
    # Four standard errors of the simulation.
    assert false_alarm_rate(looks, 0.05) == pytest.approx(share, abs=4 * 0.0005)


def test_sign_flips_at_both_looks_raise_no_more_alarms() -> None:
    generator = np.random.default_rng(2)
    experiments = generator.standard_normal((1500, 16))
    alarms = [
        sign_flip(experiment[:8]) <= 0.05 or sign_flip(experiment) <= 0.05
        for experiment in experiments
    ]
    # Two standard errors.
    assert np.mean(alarms) <= false_alarm_rate((8, 16), 0.05) + 2 * 0.0072


@pytest.mark.parametrize("conditions", [2, 8])
def test_several_comparisons_are_bounded(conditions: int) -> None:
    generator = np.random.default_rng(3)
    first, more = generator.standard_normal((2, 200_000, conditions))
    largest = [np.abs(walk).max(axis=1) for walk in (first, (first + more) / np.sqrt(2))]
    critical = norm.ppf(1 - (1 - 0.95 ** (1 / conditions)) / 2)
    share = float(np.mean((largest[0] > critical) | (largest[1] > critical)))
    bound = false_alarm_rate((8, 16), 0.05, conditions)
    assert share <= bound < min(0.1, share + 0.005)


def test_the_same_share_of_blocks_has_the_same_rate() -> None:
    assert false_alarm_rate((8, 16), 0.05) == pytest.approx(false_alarm_rate((80, 160), 0.05))


@pytest.mark.parametrize(
    ("looks", "alpha"), [((), 0.05), ((0,), 0.05), ((8, 8), 0.05), ((16, 8), 0.05), ((8,), 0.0)]
)
def test_what_are_no_looks_is_refused(looks: Sequence[int], alpha: float) -> None:
    with pytest.raises(ValueError, match="expected"):
        false_alarm_rate(looks, alpha)
