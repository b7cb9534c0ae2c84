# SPDX-License-Identifier: Apache-2.0
"""The log: a call in every language, events without a pause, MooBench's experiment in Java."""

from pathlib import Path
from tempfile import TemporaryDirectory

from bench.cases import publish
from bench.log import calls_in_bursts, idle, kills, moobench, sustained

REPETITIONS = 5
"""Enough that one that was disturbed does not decide: bars are held by medians."""
LOOPS, QUICK_LOOPS = 10, 5


def run(quick: bool) -> bool:
    """Measures all cases, or only those that have a bar; returns whether all bars are met."""
    turns, loops = (60, QUICK_LOOPS) if quick else (300, LOOPS)
    killed = kills.cases()
    with TemporaryDirectory() as name:
        folder = Path(name)
        cases = [
            *calls_in_bursts.cases(folder, turns),
            *sustained.cases(folder, REPETITIONS, quick=quick),
            *idle.cases(folder, REPETITIONS),
            *killed,
        ]
        experiment = moobench.measure(folder, loops, quick=quick)
    left_out = [f"- not measured: {name}: {why}" for name, why in calls_in_bursts.absent().items()]
    about = (
        f"Calls: {turns} bursts of {calls_in_bursts.BURST:,} events, unless a row says otherwise,"
        " in random order; what logs has a CPU, collectors have the other one, and threads of a"
        f" peer's own process may use both. Sustained: {sustained.EVENTS:,} events in one go;"
        " workers that compress share the collector's CPU, since there is no third. Recorded: the"
        " program has logged them before the collector comes, which then has all CPUs."
        f" {moobench.about(loops)}"
    )
    met = publish(
        "log",
        [*cases, *experiment.cases],
        f"{'BENCH=quick ' * quick}make bench-log",
        about,
        "\n\n".join([*left_out, *experiment.tables]),
    )
    return met and not left_out and not experiment.failures
