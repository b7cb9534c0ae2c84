# SPDX-License-Identifier: Apache-2.0
"""many_rings.py SOCKET [USER...]: hands over segments that together have more rings than a process
can have mappings, as each of these users in turn, and waits."""

import os
import sys
from itertools import cycle, islice

from tests.hostile.attacks.segment import RINGS, Segment, acting_as

kept = []
for user in islice(cycle(map(int, sys.argv[2:] or [str(os.geteuid())])), 80):
    with acting_as(user):
        segment = Segment()
        segment.write("rings_used", "I", RINGS)
        kept.append((segment, segment.hand_over(sys.argv[1])))
print("ready", flush=True)
sys.stdin.readline()
