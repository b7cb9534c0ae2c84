# SPDX-License-Identifier: Apache-2.0
"""long_names.py SOCKET: hands over a segment with all channels, each with one name of 4 KiB that
takes six times as much as JSON, and waits."""

import os
import sys

from tests.hostile.attacks.segment import Segment, at

segment = Segment()
os.pwrite(segment.fd, b"\1" * 4096, at("tare_log_process", "names"))
segment.open_channels(4096)
connection = segment.hand_over(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
