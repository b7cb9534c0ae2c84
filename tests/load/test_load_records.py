# SPDX-License-Identifier: Apache-2.0
"""What tare-load records is what the server saw."""

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from tests.load.conftest import Measure, Measurement, Nginx


@pytest.mark.parametrize(
    "load",
    [
        ["--requests", "700"],
        ["--requests", "700", "--users", "5", "--threads", "2"],
        ["--requests", "100", "--connection", "per-request"],
        ["--duration", "300ms", "--users", "3"],
        ["--duration", "300ms", "--mode", "open", "--rate", "1000"],
        ["--duration", "300ms", "--mode", "constant", "--rate", "500", "--users", "4"],
    ],
    ids=" ".join,
)
def test_every_request_that_nginx_logged_is_recorded(
    nginx: Nginx, measure: Measure, load: list[str]
) -> None:
    measured = measure(nginx.url(), *load)

    assert nginx.logged() == (len(measured.samples), 0)
    target = measured.summary["targets"][0]
    assert (target["requests"], target["errors"]) == (len(measured.samples), 0)
    assert [row["seq"] for row in measured.samples] == list(range(len(measured.samples)))
    assert {
        (row["condition"], row["source"], row["ok"], row["status"], row["error"])
        for row in measured.samples
    } == {("default", "client", True, 200, None)}
    assert all(row["intended_ns"] <= row["start_ns"] for row in measured.samples)


def test_targets_have_their_slices_in_turn(nginx: Nginx, measure: Measure) -> None:
    targets = ["--target", f"one={nginx.url(0)}", "--target", f"two={nginx.url(1)}"]
    gone = 4194304  # no process has this number: one of a service that ended meanwhile
    watch = ["--watch", f"one={nginx.worker()},{gone}"]
    measured = measure(*targets, *watch, "--duration", "400ms", "--seed", "3", "--users", "2")

    by_target = Counter(row["condition"] for row in measured.samples)
    assert nginx.logged() == (by_target["one"], by_target["two"])
    order = _order(measured)
    rounds = [set(order[at : at + 2]) for at in range(0, len(order), 2)]
    assert rounds
    assert all(each == {"one", "two"} for each in rounds)
    slices = _by_slice(measured, "generator", "requests")
    assert Counter(row["slice"] for row in measured.samples) == {
        number: row["value"] for number, row in slices.items() if row["value"]
    }
    for row in measured.samples:
        slice_ = slices[row["slice"]]
        assert row["condition"] == slice_["condition"]
        assert slice_["start_ns"] <= row["start_ns"]
        end = slice_["start_ns"] + slice_["duration_ns"]
        assert row["start_ns"] + row["duration_ns"] <= end
    watched = _by_slice(measured, "service", "cpu_time").values()
    assert {row["condition"] for row in watched} == {"one"}
    assert sum(row["value"] for row in watched) > 0


def test_the_seed_gives_the_order(nginx: Nginx, measure: Measure) -> None:
    """That of the first round: how many there are is up to the server."""
    targets = ["--target", f"one={nginx.url(0)}", "--target", f"two={nginx.url(1)}"]

    def first_round(seed: int) -> tuple[str, ...]:
        measured = measure(*targets, "--requests", "32", "--seed", str(seed))
        return tuple(_order(measured)[:2])

    first, again = ([first_round(seed) for seed in range(8)] for _ in range(2))
    assert first == again
    assert set(first) == {("one", "two"), ("two", "one")}


def test_slices_of_one_target_leave_no_gap(nginx: Nginx, measure: Measure) -> None:
    measured = measure(nginx.url(), "--duration", "200ms", "--slice", "20ms", "--users", "4")

    slices = list(_by_slice(measured, "machine", "steal").values())
    assert 0 < len(slices) <= 10
    for current, next_ in pairwise(slices):
        assert current["start_ns"] + current["duration_ns"] == next_["start_ns"]
    cpu = _by_slice(measured, "generator", "cpu_time").values()
    assert all(0 < row["value"] <= row["duration_ns"] * 1.5 for row in cpu)


@pytest.mark.parametrize("threads", ["1", "2", "3"])
def test_threads_share_a_rate_evenly(nginx: Nginx, measure: Measure, threads: str) -> None:
    load = ["--mode", "open", "--rate", "2000", "--duration", "500ms", "--slice", "1ms"]
    measured = measure(nginx.url(), *load, "--threads", threads)

    assert _spacing([row["intended_ns"] for row in measured.samples]) == 500_000


def test_threads_share_a_rate_evenly_where_targets_take_turns(
    nginx: Nginx, measure: Measure
) -> None:
    targets = ["--target", f"one={nginx.url(0)}", "--target", f"two={nginx.url(1)}"]
    load = ["--mode", "open", "--rate", "2000", "--duration", "500ms", "--slice", "5ms"]
    measured = measure(*targets, *load, "--threads", "2")

    for target in ("one", "two"):
        # The rate holds in the time that the target has load: 5 ms of each of its slices.
        slices = _by_slice(measured, "generator", "requests").values()
        starts = [row["start_ns"] for row in slices if row["condition"] == target]
        passed = {
            row["slice"]: row["start_ns"] - 5_000_000 * starts.index(row["start_ns"])
            for row in slices
            if row["condition"] == target
        }
        own = [row for row in measured.samples if row["condition"] == target]
        assert len(own) == len(starts) * 10
        assert _spacing([row["intended_ns"] - passed[row["slice"]] for row in own]) == 500_000


def _spacing(times: list[int]) -> int:
    """From one to the next, if it is the same between all of them."""
    spacing = {b - a for a, b in pairwise(sorted(times))}
    assert len(spacing) == 1, sorted(spacing)
    return spacing.pop()


def _order(measured: Measurement) -> list[str]:
    return [row["condition"] for row in _by_slice(measured, "generator", "requests").values()]


def _by_slice(measured: Measurement, subject: str, metric: str) -> dict[int, dict[str, Any]]:
    found = {
        row["slice"]: row
        for row in measured.machine
        if (row["subject"], row["metric"]) == (subject, metric)
    }
    assert list(found) == sorted(found)
    return found
