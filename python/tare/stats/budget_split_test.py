# SPDX-License-Identifier: Apache-2.0
"""The split of a budget against every split tried, and its variances against a simulation."""

from math import inf, sqrt

import numpy as np
import pytest

from tare.stats.budget_split import Components, best_requests, best_split, components


@pytest.mark.parametrize(
    ("between", "within"),
    [(4e-4, 0.04), (1e-5, 0.09), (1e-6, 0.09), (0.01, 1e-4), (1e-4, 0.0), (0.0, 0.04)],
)
@pytest.mark.parametrize("budget", [9.0, 20.0, 33.0, 48.0, 61.0, 150.0])
def test_no_other_split_has_a_smaller_error(between: float, within: float, budget: float) -> None:
    run_cost, request_cost = 2.0, 0.01
    found = best_split(Components(between, within), run_cost, request_cost, budget)
    assert found is not None
    errors = [
        sqrt((between + within / requests) / runs)
        for runs in range(2, 100)
        if (requests := int((budget / runs - run_cost) / request_cost + 1e-9)) >= 1
    ]
    assert min(errors) <= found.standard_error + 1e-12 <= 1.001 * min(errors)
    assert found.runs * (run_cost + found.requests * request_cost) <= budget + 1e-9
    assert found.between_seen == (between > 0)


def test_the_ratio_is_that_of_the_formula() -> None:
    assert best_requests(Components(0.0004, 0.04), 9.0, 0.01) == pytest.approx(300)
    assert best_requests(Components(0.0, 0.04), 9.0, 0.01) == inf


def test_runs_that_differ_by_their_requests_only_take_as_few_runs_as_are_allowed() -> None:
    found = best_split(Components(0.0, 0.04), 1.0, 0.01, 60.0, least_runs=6)
    assert found is not None
    assert (found.runs, found.requests, found.between_seen) == (6, 900, False)


def test_a_budget_too_small_for_the_least_runs_has_no_split() -> None:
    assert best_split(Components(1e-4, 0.04), 5.0, 0.01, 9.0) is None
    assert best_split(Components(1e-4, 0.04), 5.0, 0.01, 29.0, least_runs=6) is None


@pytest.mark.parametrize("between", [0.0, 0.02**2])
def test_variances_are_told_apart(between: float) -> None:
    """Runs of 50 requests with a variance of 0.09: their means scatter by 0.042 for that alone."""
    generator = np.random.default_rng(9)
    found = []
    for _ in range(500):
        requests = generator.normal(generator.normal(0, sqrt(between), (10, 1)), 0.3, (10, 50))
        variances = components(requests.mean(axis=1), requests.var(axis=1, ddof=1), [50] * 10)
        assert variances is not None
        assert variances.between >= 0
        found.append((variances.between, variances.within))
    means = np.mean(found, axis=0)
    # Kept at 0 or above, an estimate of nothing is a little more than nothing.
    assert means[0] == pytest.approx(between, abs=5e-4)
    assert means[1] == pytest.approx(0.09, rel=0.02)


def test_one_run_says_nothing_of_others() -> None:
    assert components([1.0], [0.1], [10]) is None
    same = components([1.0, 1.0], [0.1, 0.1], [10, 10])
    assert same is not None
    assert same.between == 0


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(ValueError, match="as many"):
        components([1.0, 2.0], [0.1], [10])
    with pytest.raises(ValueError, match="at least 0"):
        components([1.0, 2.0], [-0.1, 0.1], [10, 10])
    with pytest.raises(ValueError, match="sizes"):
        components([1.0, 2.0], [0.1, 0.1], [10, 0])
    with pytest.raises(ValueError, match="finite"):
        components([1.0, np.nan], [0.1, 0.1], [10, 10])
    with pytest.raises(ValueError, match="costs"):
        best_requests(Components(1e-4, 0.04), 1.0, 0.0)
