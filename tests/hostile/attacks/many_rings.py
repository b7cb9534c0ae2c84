# SPDX-License-Identifier: Apache-2.0
"""many_rings.py SOCKET: hands over segments that together have more rings than a process can
have mappings, and waits."""

import sys

from tests.hostile.attacks.segment import RINGS, Segment

kept = []
for _ in range(80):
    segment = Segment()
    segment.write("rings_used", "I", RINGS)
    kept.append((segment, segment.hand_over(sys.argv[1])))
print("ready", flush=True)
sys.stdin.readline()
