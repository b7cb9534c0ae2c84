# SPDX-License-Identifier: Apache-2.0
import pytest

from tare.lab.machine.saturation import Saturation
from tare.lab.validity.resource_limits import GENERATOR, invalid_reason

SECOND = 1_000_000_000


@pytest.mark.parametrize(
    ("counters", "reason"),
    [
        ({"oom_kills": 1}, "the kernel killed a process of the service because memory ran out"),
        ({"throttled_time": SECOND // 20}, "the service was throttled for 0.05 s of 2 s"),
        ({"pressure_memory": SECOND // 20}, "the service waited for memory for 0.05 s of 2 s"),
        ({"throttled_time": SECOND // 200}, None),
        ({"pressure_memory": SECOND // 200, "pressure_io": SECOND}, None),
        ({"pressure_cpu": 2 * SECOND}, None),  # service and generator share a core by design
    ],
)
def test_what_makes_a_run_no_measurement(counters: dict[str, int], reason: str | None) -> None:
    found = invalid_reason(Saturation(0, 2 * SECOND, counters))
    assert found is reason if reason is None else str(found).startswith(reason)


def test_a_quota_of_the_generator_has_its_name() -> None:
    assert invalid_reason(Saturation(0, SECOND, {"throttled_time": SECOND}), GENERATOR) == (
        "the load generator was throttled for 1 s of 1 s: raise its CPU quota"
    )
