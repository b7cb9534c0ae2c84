# SPDX-License-Identifier: Apache-2.0
"""A recorded answer of chronyd 4.3, and a server that answers oddly or not at all."""

import socket
import struct
from collections.abc import Iterator

import pytest

from tare.lab.machine import chrony
from tare.lab.machine.chrony import MOST_UNANSWERED, Chrony, Tracking, is_answer, request, tracking

# `chronyc -c tracking` printed offset -0.000001336, RMS offset 0.000000780, root delay 0.000004195
# and root dispersion 0.000001304 of it.
ANSWER = bytes.fromhex(
    "060200000021000500000000000000000000000100000000000000007f0000017f00000100000000"
    "00000000000000000001000000020000000000006b0978e41213a0c2dd4cbcb8d73655c5dad162a5"
    "fa9924f6feb8106d008ac510e08cc2c7dcae2e1004819f53"
)


class Server:
    """A socket that a test answers from."""

    def __init__(self) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]

    def answer(self, *answers: bytes) -> bytes:
        """Sends answers with the number of the next question, which it returns."""
        question, address = self.socket.recvfrom(1024)
        for answer in answers:
            self.socket.sendto(answer[:16] + question[8:12] + answer[20:], address)
        return question


@pytest.fixture
def server() -> Iterator[Server]:
    chronyd = Server()
    yield chronyd
    chronyd.socket.close()


def test_the_recorded_answer_has_the_values_of_chronyc() -> None:
    found = tracking(ANSWER)
    assert found is not None
    assert found.offset == pytest.approx(-1336, abs=1)
    assert found.error == pytest.approx(780, abs=1)
    assert found.error_limit == pytest.approx(1336 + 1304 + 4195 / 2, abs=10)


def test_a_call_returns_the_answer_to_an_earlier_one(server: Server) -> None:
    client = Chrony(server.port)
    assert client.tracking() is None
    question = server.answer(ANSWER)
    assert len(question) == len(ANSWER), "chronyd does not send more than it receives"
    assert client.tracking() == tracking(ANSWER)
    assert client.tracking() == tracking(ANSWER), "until the next answer arrives"


def test_without_answers_it_stops_to_ask(server: Server) -> None:
    client = Chrony(server.port)
    client.tracking()
    server.answer(ANSWER)
    found = [client.tracking() for _ in range(MOST_UNANSWERED + 3)]
    assert found[0] is not None
    assert found[-1] is None
    server.answer(ANSWER)
    assert client.tracking() is None


def test_without_a_server_nothing_is_known() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    client = Chrony(port)
    assert [client.tracking() for _ in range(MOST_UNANSWERED + 3)] == [None] * (MOST_UNANSWERED + 3)


@pytest.mark.parametrize(
    ("at", "value"), [(0, 5), (1, 1), (5, 9), (7, 9), (9, 8)], ids=["version", "kind", "command",
                                                                   "reply", "status"],
)  # fmt: skip
def test_other_packets_are_no_answers(at: int, value: int) -> None:
    assert is_answer(ANSWER[:16] + struct.pack("!I", 3) + ANSWER[20:], 3)
    assert not is_answer(ANSWER[:at] + bytes([value]) + ANSWER[at + 1 :], 2**32)


@pytest.mark.parametrize("number", [0, 4])
def test_an_answer_to_no_question_is_none(number: int) -> None:
    assert not is_answer(ANSWER[:16] + struct.pack("!I", number) + ANSWER[20:], 3)


@pytest.mark.parametrize("length", [0, 1, 27, 28, len(ANSWER) - 1])
def test_a_short_packet_is_no_answer(length: int) -> None:
    assert not is_answer(ANSWER[:length], 2**32)


def test_a_clock_without_synchronization_has_no_offset() -> None:
    leap = 28 + 4 + 20 + 2
    assert tracking(ANSWER[:leap] + b"\0\3" + ANSWER[leap + 2 :]) is None


@pytest.mark.parametrize(
    ("number", "seconds"), [(0, 0.0), (1 << 25 | 1 << 23, 0.5), (-1, -(2.0**-26)),
                            (3 << 25 | 1 << 22, 1.0), (-1 << 25 | 1 << 24, -0.25)],
)  # fmt: skip
def test_numbers_have_a_signed_exponent_and_coefficient(number: int, seconds: float) -> None:
    assert chrony._nanoseconds(number) == pytest.approx(1e9 * seconds)


def test_a_request_is_of_version_6() -> None:
    assert request(7)[:12] == bytes.fromhex("060100000021000000000007")
    assert isinstance(tracking(ANSWER), Tracking)
