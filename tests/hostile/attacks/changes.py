# SPDX-License-Identifier: Apache-2.0
"""changes.py SOCKET [USER...]: hands over segments with all channels and all rings, as each of
these users, and reports changes of all channels again and again until its input ends."""

import os
import sys
import threading

from tests.hostile.attacks.segment import RINGS, Segment, acting_as

segments = []
for user in map(int, sys.argv[2:] or [str(os.geteuid())] * 8):
    with acting_as(user):
        segment = Segment()
        segment.write("rings_used", "I", RINGS)
        segment.open_channels(0)
        segments.append((segment, segment.hand_over(sys.argv[1])))


def change() -> None:
    number = 0
    while True:
        number += 1
        for segment, _ in segments:
            segment.write("changes", "I", number % (1 << 32))


threading.Thread(target=change, daemon=True).start()
print("ready", flush=True)
sys.stdin.readline()
