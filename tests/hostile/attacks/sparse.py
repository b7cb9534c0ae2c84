# SPDX-License-Identifier: Apache-2.0
"""sparse.py SOCKET: hands over a segment whose rings are full of words that were never written,
and waits."""

import sys

from tests.hostile.attacks.segment import Segment

WORDS = 1 << 24
segment = Segment(WORDS)
segment.write("rings_used", "I", 8)
for place in range(8):
    segment.head(place, WORDS)
connection = segment.hand_over(sys.argv[1])
print("ready", flush=True)
print(segment.fd, flush=True)
sys.stdin.readline()
