# SPDX-License-Identifier: Apache-2.0
"""Whether the CPUs' frequency is known and can be held still."""

import os
from pathlib import Path

from tare.lab.doctor.finding import Found
from tare.lab.machine.fingerprint import frequency_boost, frequency_governor

_CPU = Path("/sys/devices/system/cpu")


def frequency() -> Found:
    governor, boost = frequency_governor(), frequency_boost()
    details = {"governor": governor, "boost": boost, "can_be_set": _can_be_set()}
    if governor is None:
        return Found("no", "the hypervisor or the firmware decides", details)
    boosting = {True: "boost on", False: "boost off", None: "boost unknown"}[boost]
    if not details["can_be_set"]:
        return Found("partly", f"{governor}, {boosting}; this user cannot change it", details)
    return Found("yes", f"{governor}, {boosting}; this user can change it", details)


def _can_be_set() -> bool:
    return any(os.access(path, os.W_OK) for path in _CPU.glob("cpu[0-9]*/cpufreq/scaling_governor"))
