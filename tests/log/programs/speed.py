# SPDX-License-Identifier: Apache-2.0
"""speed EVENTS BURSTS [wait|overwrite]: as speed.c; the loop itself is part of the time."""

import sys
from time import perf_counter_ns, sleep

from tare.log import Channel


def burst(channel: Channel, first: int, events: int) -> float:
    log = channel.log
    begin = perf_counter_ns()
    for number in range(first, first + events):
        log(number)
    return (perf_counter_ns() - begin) / events


def main() -> None:
    events, bursts = int(sys.argv[1]), int(sys.argv[2])
    policy = sys.argv[3] if len(sys.argv) > 3 else "drop"
    channel = Channel("speed", policy=policy)  # type: ignore[arg-type]
    times = []
    for number in range(bursts):
        times.append(burst(channel, number * events, events))
        if policy != "wait":
            sleep(0.005)
    times.sort()
    mean = sum(times) / bursts
    print(f"min {times[0]:.2f} median {times[bursts // 2]:.2f} mean {mean:.2f} ns")


main()
