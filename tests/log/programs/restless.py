# SPDX-License-Identifier: Apache-2.0
"""restless: logs without a pause until there is a line on stdin."""

import select
import sys

from tare.log import Channel

channel = Channel("restless")
print("ready", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    for number in range(1000):
        channel.log(number)
