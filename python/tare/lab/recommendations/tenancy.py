# SPDX-License-Identifier: Apache-2.0
"""Recommendation 4: nothing else runs on the machine.

Other virtual machines show as steal time, other programs by their CPU time, and what ran before
the experiment as pressure.
"""

from tare.lab.recommendations.check_result import CheckResult, by_readings
from tare.lab.recommendations.observations import RunObservations

STEAL = 0.01
"""Share of the CPU time."""
CPUS = 0.1
"""CPU seconds per second of all other programs together."""
PRESSURE = 10.0
"""Percent of the last 10 s in which some task waited for a CPU, a disk or memory."""
RESOURCES = ("cpu", "io", "memory")


def judge(run: RunObservations) -> CheckResult | None:
    """None for a run without load."""
    others = run.others
    if others is None:
        return None
    named = ", ".join(f"{name} (PID {pid}) {cpus:.2f}" for name, pid, cpus in others.programs)
    pressures = {
        name: value
        for name in RESOURCES
        if isinstance(value := run.machine.get(f"pressure_{name}"), int | float)
    }
    before = ", ".join(f"{name} {value:g} %" for name, value in pressures.items())
    busy = others.cpus > CPUS
    return by_readings(
        (
            not busy,
            f"other programs used {others.cpus:.2f} CPUs during the load"
            + (f": {named}" if busy and named else ""),
        ),
        (
            others.stolen <= STEAL,
            f"other virtual machines took {100 * others.stolen:.1f} % of the CPU time (steal)",
        ),
        (
            others.experiments == 0,
            f"other runs of tare at the same time: {others.experiments}",
        ),
        (
            max(pressures.values(), default=0.0) <= PRESSURE,
            f"pressure before the first run: {before or 'not known'}",
        ),
    )
