# SPDX-License-Identifier: Apache-2.0
"""refill.py SOCKET: fills the rings of a segment again and again until it ends, while the process
that has handed it over ends."""

import os
import sys

from tests.hostile.attacks.segment import Segment

WORDS = 1 << 17
RINGS = 256
PROCESSES = 4
segment = Segment(WORDS)
segment.write("rings_used", "I", RINGS)


def refill(parent: int) -> None:
    while os.getppid() == parent:
        for place in range(RINGS):
            segment.head(place, segment.tail(place) + WORDS)


this = os.getpid()
for _ in range(PROCESSES):
    if os.fork() == 0:
        refill(this)
        os._exit(0)
if (child := os.fork()) == 0:
    connection = segment.hand_over(sys.argv[1])
    os._exit(0)
os.waitpid(child, 0)
print("ready", flush=True)
sys.stdin.readline()
