# SPDX-License-Identifier: Apache-2.0
import pytest
from pydantic_core import PydanticCustomError

from tare.plan.schema.placeholders import fill
from tare.plan.schema.values import (
    ShareOfCapacity,
    bit_rate,
    command,
    duration_ns,
    fraction,
    rate,
    relative_path,
    some_fraction,
    stop_signal,
    url_path,
)


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [("5ms", 5_000_000), ("2s", 2 * 10**9), ("1.5 s", 1_500_000_000), ("3us", 3000), ("7ns", 7),
     ("2m", 120 * 10**9), ("1h", 3600 * 10**9), ("0s", 0)],
)  # fmt: skip
def test_durations(text: str, nanoseconds: int) -> None:
    assert duration_ns(text) == nanoseconds


@pytest.mark.parametrize("bad", [5, "5", "-1s", "ms", "", True, "1d", None])
def test_what_is_not_a_duration(bad: object) -> None:
    with pytest.raises(PydanticCustomError):
        duration_ns(bad)


def test_bit_rates() -> None:
    assert bit_rate("64 kbit/s") == 64_000
    assert bit_rate("2.5Mbit/s") == 2_500_000
    assert bit_rate("1000 Gbit/s") == 10**12
    for bad in (100, "100", "0 Mbit/s", "1 MB/s", "1001 Gbit/s", "1 mbit/s", True):
        with pytest.raises(PydanticCustomError):
            bit_rate(bad)


def test_fractions() -> None:
    assert fraction("3%") == pytest.approx(0.03)
    assert fraction(0.03) == 0.03
    for bad in ("3", 3, -0.1, "101%", True, "x"):
        with pytest.raises(PydanticCustomError):
            fraction(bad)


def test_what_a_verdict_can_be_reached_with() -> None:
    assert some_fraction("99%") == pytest.approx(0.99)
    for bad in (0, 1, "100%"):
        with pytest.raises(PydanticCustomError):
            some_fraction(bad)


def test_paths_are_as_they_are_sent() -> None:
    assert url_path("/caf%C3%A9?a=b&c") == "/caf%C3%A9?a=b&c"
    for bad in ("", "a", "/café", "/a b", "/a\r\nb", "/\x7f", 5):
        with pytest.raises(PydanticCustomError):
            url_path(bad)


def test_rates() -> None:
    assert rate(200) == 200.0
    assert not isinstance(rate(200), ShareOfCapacity)
    assert isinstance(rate("80% of capacity"), ShareOfCapacity)
    for bad in (0, -1, "80%", "80", True):
        with pytest.raises(PydanticCustomError):
            rate(bad)


def test_commands_and_signals() -> None:
    assert command("sh -c 'a b'") == ["sh", "-c", "a b"]
    assert command(["a b", ""]) == ["a b", ""]
    for bad in ("", [], "sh 'a", 5, ["a", 5], "a\0", ["a", "\0"]):
        with pytest.raises(PydanticCustomError):
            command(bad)
    assert stop_signal("sigquit") == "QUIT"
    with pytest.raises(PydanticCustomError):
        stop_signal("STOPPED")


@pytest.mark.parametrize("bad", ["", ".", "./a", "a/", "a//b", "/a", "..", "a/../b", "a\0", 5])
def test_what_is_not_the_path_of_a_file_in_a_folder(bad: object) -> None:
    assert relative_path("a/.b..c") == "a/.b..c"
    with pytest.raises(PydanticCustomError):
        relative_path(bad)


def test_only_known_placeholders_are_filled() -> None:
    text = "http { listen {port}; root {dir}/www; map {unknown} {} }"
    assert fill(text, {"port": 80, "dir": "/{port}"}) == (
        "http { listen 80; root /{port}/www; map {unknown} {} }"
    )
