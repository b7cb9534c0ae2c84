# SPDX-License-Identifier: Apache-2.0
"""As lines.c."""

import sys

from tare.log import Channel

numbers, texts = Channel("numbers"), Channel("texts", policy="overwrite")
print("ready", flush=True)
while sys.stdin.read(1):
    for number in range(64):
        numbers.log(number)
        numbers.log(number << 46)
        texts.bytes(bytes(64 * number))
    Channel("others").close()
    print("done", flush=True)
