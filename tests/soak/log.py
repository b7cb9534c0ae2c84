# SPDX-License-Identifier: Apache-2.0
"""kill -9 of programs that log and of their collector, at random moments: the last number that
each thread has written to a page of its own, and the file, agree every time.

What was found stays beside this file; `make bench-log` reads it.
"""

import json
import random
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.log import kills
from bench.results import commit, renew
from tests.log.conftest import compile_program
from tests.log.test_kills import THREADS, kill_collector, kill_target


def run(tries: int) -> None:
    """Kills the program so many times and the collector a quarter as often, and renews the
    section; raises AssertionError where file and page differ."""
    chance = random.Random(1)
    collectors = tries // 4
    logged = kept = lost = with_losses = 0
    with TemporaryDirectory() as programs:
        counting = compile_program("counting", Path(programs))
        for number in range(1, tries + 1):
            with TemporaryDirectory() as folder:
                logged += kill_target(counting, Path(folder), chance)
            print(f"program killed {number} times, {logged:,} events", flush=True)
        for number in range(1, collectors + 1):
            with TemporaryDirectory() as folder:
                found = kill_collector(counting, Path(folder), chance)
            kept, lost = kept + found[0], lost + found[1]
            with_losses += found[1] > 0
            print(f"collector killed {number} times, {kept:,} kept, {lost:,} lost", flush=True)
    lines = [
        f"A program whose {THREADS} threads log without a pause (policy wait), killed {tries}"
        f" times: {logged:,} events, all of them in the file, {tries} of {tries} times.",
        "",
        f"Its collector, killed {collectors} times and replaced: {kept:,} events in the file,"
        f" once and in order, {lost:,} counted as lost because nobody was there to wait for"
        f" ({with_losses} times); what was kept and what was lost is what was logged,"
        f" {collectors} of {collectors} times.",
    ]
    series = {"program": (tries, logged, 0), "collector": (collectors, kept, lost)}
    about = {"commit": commit(), "date": f"{datetime.now():%Y-%m-%d}"}
    results = [
        about | {"killed": killed, "times": times, "kept": kept, "lost": lost}
        for killed, (times, kept, lost) in series.items()
    ]
    kills.FOUND.write_text("".join(json.dumps(result) + "\n" for result in results))
    command = f"python -m tests.soak log --log-kills {tries}"
    renew("log-kills", "kill -9 of what logs and of what collects", command, "\n".join(lines))
