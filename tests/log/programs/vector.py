# SPDX-License-Identifier: Apache-2.0
"""Logs what tests/log/vector.txt says, and stays until its input ends."""

import sys
from contextlib import suppress

from tare.log import Channel, Span

numbers, texts, work = Channel("numbers"), Channel("texts"), Span("work")
EDGE = 1 << 45
for number in (0, -1, EDGE - 1, -EDGE, EDGE, -EDGE - 1, 2**63 - 1, -(2**63)):
    numbers.log(number)
for text in (b"", bytearray(b"a"), memoryview(b"fifteen letters"), b"sixteen letters!"):
    texts.bytes(text)
texts.bytes(b"seventeen letters")
with suppress(KeyError), work.numbered(42):
    raise KeyError
print("ready", flush=True)
sys.stdin.read()
