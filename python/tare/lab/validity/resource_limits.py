# SPDX-License-Identifier: Apache-2.0
"""The service or the load generator reached a limit of a resource: the run measures the limit."""

from tare.lab.machine.descriptors import Descriptors
from tare.lab.machine.saturation import Saturation

SERVICE, GENERATOR = "the service", "the load generator"
LIMIT = 0.01
"""Share of the load, as of failed requests: what hits more of them is in the p99."""


def invalid_reasons(
    service: Saturation | None, generator: Saturation | None, descriptors: Descriptors | None
) -> list[str]:
    """One for each limit that was reached; `descriptors` are those of the service."""
    found = [
        invalid_reason(saturation, who)
        for who, saturation in ((SERVICE, service), (GENERATOR, generator))
        if saturation is not None
    ]
    if descriptors is not None and descriptors.open >= descriptors.limit:
        found.append(
            f"the service has {descriptors.open:,} descriptors (PID {descriptors.pid}), as many as"
            " it may have: raise its limit (ulimit -n)"
        )
    return [reason for reason in found if reason is not None]


def invalid_reason(saturation: Saturation, who: str = SERVICE) -> str | None:
    """By memory and CPU quotas."""
    killed = saturation.counters.get("oom_kills", 0)
    if killed:
        what = "a process" if killed == 1 else f"{killed} processes"
        return f"the kernel killed {what} of {who} because memory ran out; raise its limit"
    if saturation.share("pressure_memory") > LIMIT:
        waited = saturation.time("pressure_memory")
        return f"{who} waited for memory for {waited}: raise its memory limit"
    if saturation.share("throttled_time") > LIMIT:
        throttled = saturation.time("throttled_time")
        return f"{who} was throttled for {throttled}: raise its CPU quota"
    return None
