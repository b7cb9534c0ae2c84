# SPDX-License-Identifier: Apache-2.0
"""A program that waits for its turn: logs as many events as a line says with tare.log."""

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
