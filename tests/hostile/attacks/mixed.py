# SPDX-License-Identifier: Apache-2.0
"""mixed.py SOCKET: segments of other versions, programs without rings, programs with random words
in their rings, and requests for files, all at once until its input ends."""

import os
import random
import socket
import struct
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

from tests.hostile.attacks.segment import Segment, at

PATH = sys.argv[1]
HELD = 200
RINGS = 64


def again_and_again(attack: Callable[[], None]) -> None:
    def forever() -> None:
        while True:
            # The collector has refused something, or too many descriptors are open.
            with suppress(OSError):
                attack()

    threading.Thread(target=forever, daemon=True).start()


other_version = Segment()
os.pwrite(other_version.fd, b"\x63", at("tare_shm_header", "version"))
bare: list[socket.socket] = []
random_words = Segment()
random_words.write("rings_used", "I", RINGS)


def send_other_version() -> None:
    other_version.hand_over(PATH).close()


def hold_bare_program() -> None:
    segment = Segment()
    bare.append(segment.hand_over(PATH))
    os.close(segment.fd)
    if len(bare) > HELD:
        bare.pop(0).close()


def change_words() -> None:
    chance = random.Random(1)
    served = random_words.hand_over(PATH)
    values = 0, 1, 2, 3, 1 << 10, 1 << 31, (1 << 62) - 2, 1 << 62, (1 << 64) - 1
    for _ in range(100_000):
        place = random_words.ring(chance.randrange(RINGS)) + 8 * chance.randrange(1 << 8)
        os.pwrite(random_words.fd, struct.pack("Q", chance.choice(values)), place)
    served.close()


def ask_for_file() -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(PATH)
        connection.send(os.urandom(16))
        connection.recv(1)


for attack in (send_other_version, hold_bare_program, change_words, ask_for_file):
    again_and_again(attack)
print("ready", flush=True)
sys.stdin.readline()
