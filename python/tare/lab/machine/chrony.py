# SPDX-License-Identifier: Apache-2.0
"""Asks a chronyd on this host about the clock, in the protocol of chronyc (chrony's candm.h).

chronyd corrects the clock by its rate, so the kernel does not know the offset.
"""

import socket
import struct
from contextlib import suppress
from dataclasses import dataclass
from weakref import finalize

PORT = 323
_REQUEST, _REPLY, _TRACKING, _TRACKING_REPLY = 1, 2, 33, 5
_VERSION = 6
_UNSYNCHRONIZED = 3
_HEADER = struct.Struct("!BBxxHHHxxxxxxI8x")
"""Of a reply: version, kind, command, kind of reply, status, number of the request."""
_DATA = struct.Struct("!4x20xHH12xiiiiiiiii")
"""Reference, address, stratum, leap status, time, then numbers in chrony's own format."""
_LENGTH = _HEADER.size + _DATA.size
MOST_UNANSWERED = 5
"""After these questions without an answer, no chronyd is expected any more."""


@dataclass(frozen=True)
class Tracking:
    """What chronyd knows of the clock, in ns."""

    offset: float
    """Positive if the clock is behind."""
    error: float
    """Long-term average of offsets that were measured."""
    error_limit: float
    """Offset, dispersion and half the delay up to the source of time."""


class Chrony:
    """Asks without waiting: each call reads the answers to the questions of earlier calls."""

    def __init__(self, port: int = PORT) -> None:
        self._number = 0
        self._unanswered = 0
        self._last: Tracking | None = None
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        finalize(self, self._socket.close)
        self._socket.setblocking(False)
        self._socket.connect(("127.0.0.1", port))

    def tracking(self) -> Tracking | None:
        """The state of the clock by the last answer; None without chronyd."""
        if self._unanswered > MOST_UNANSWERED:
            return None
        with suppress(OSError):  # nothing has arrived, or nothing listens there
            while True:
                self._take(self._socket.recv(1024))
        with suppress(OSError):
            self._number += 1
            self._unanswered += 1
            self._socket.send(request(self._number))
        return self._last if self._unanswered <= MOST_UNANSWERED else None

    def _take(self, reply: bytes) -> None:
        if is_answer(reply, self._number):
            self._unanswered = 0
            self._last = tracking(reply)


def request(number: int) -> bytes:
    """A question, as long as its answer: chronyd refuses to send more than it receives."""
    head = struct.pack("!BBxxHHI", _VERSION, _REQUEST, _TRACKING, 0, number)
    return head.ljust(_LENGTH, b"\0")


def is_answer(reply: bytes, number: int) -> bool:
    """Whether a packet answers one of the questions up to a number."""
    if len(reply) < _LENGTH:
        return False
    *head, of = _HEADER.unpack_from(reply)
    return head == [_VERSION, _REPLY, _TRACKING, _TRACKING_REPLY, 0] and 1 <= of <= number


def tracking(reply: bytes) -> Tracking | None:
    """The content of an answer; None without synchronization."""
    _, leap, *numbers = _DATA.unpack_from(reply, _HEADER.size)
    if leap == _UNSYNCHRONIZED:
        return None
    offset, _, rms, _, _, _, delay, dispersion, _ = map(_nanoseconds, numbers)
    return Tracking(offset, rms, abs(offset) + dispersion + delay / 2)


def _nanoseconds(number: int) -> float:
    """A number of seconds: 7 bits are the exponent, 25 bits the coefficient, both signed."""
    exponent, coefficient = number >> 25, number & (1 << 25) - 1
    if coefficient >= 1 << 24:
        coefficient -= 1 << 25
    return 1e9 * coefficient * 2.0 ** (exponent - 25)
