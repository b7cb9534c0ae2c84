# SPDX-License-Identifier: Apache-2.0
"""A timed loop of tare.log: for each line "N" on stdin it logs N events and prints the ns."""

import sys
from time import perf_counter_ns

from tare.log import Channel


def log_events(channel: Channel, events: int) -> None:
    """As many as said, and nothing else."""
    log = channel.log
    for event in range(events):
        log(event)


calls = Channel("calls")
for line in sys.stdin:
    wanted = int(line)
    begin = perf_counter_ns()
    log_events(calls, wanted)
    print(perf_counter_ns() - begin, flush=True)
