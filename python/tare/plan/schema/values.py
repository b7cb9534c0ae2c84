# SPDX-License-Identifier: Apache-2.0
"""Values as a person writes them in a plan: durations, fractions, rates, commands."""

import re
import shlex
import signal
from collections.abc import Callable, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from tare.plan.schema.placeholders import AGENT_NAMES, SERVICE_NAMES, unknown_name
from tare.untrusted import is_relative

UNITS_NS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9}
UNITS_NS["h"] = 60 * UNITS_NS["m"]
LONGEST_NS = 10 * 365 * 24 * UNITS_NS["h"]


def expected(what: str, *keys: str | int) -> PydanticCustomError:
    """The error of a value that is not what the plan needs; the reader adds what was found.

    `keys` lead from the table that is checked to the value.
    """
    return PydanticCustomError("expected", "{what}", {"what": what, "keys": keys})


def _number(value: Any, suffix: str) -> float | None:
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*" + suffix + r"\s*", str(value))
    return float(match[1]) if match else None


def duration_ns(value: Any) -> int:
    """Nanoseconds of a text such as `5ms` or `2s`; a bare number has no unit and is refused."""
    if isinstance(value, str):
        for unit, factor in UNITS_NS.items():
            number = _number(value, unit)
            if number is not None and number * factor <= LONGEST_NS:
                return round(number * factor)
    raise expected('a duration such as "5ms" or "2s", of 10 years at most')


def some_duration_ns(value: Any) -> int:
    """A duration above zero."""
    duration = duration_ns(value)
    if duration == 0:
        raise expected("a duration above zero")
    return duration


def fraction(value: Any) -> float:
    """A fraction from 0 to 1, written as a fraction or as a percentage."""
    if isinstance(value, str):
        number = _number(value, "%")
        share = None if number is None else number / 100
    else:
        share = None if isinstance(value, bool) else value
    if not isinstance(share, int | float) or not 0 <= share <= 1:
        raise expected('a percentage such as "3%", or a fraction from 0 to 1')
    return float(share)


def some_fraction(value: Any) -> float:
    """A fraction above 0 and below 1."""
    share = fraction(value)
    if not 0 < share < 1:
        raise expected("a fraction above 0 and below 1")
    return share


SIZES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
LARGEST_SIZE = 2**50


def size(value: Any) -> int:
    """Bytes of a text such as `512 MiB`; a bare number has no unit and is refused."""
    if isinstance(value, str):
        for unit, factor in SIZES.items():
            number = _number(value, unit)
            if number is not None and 1 <= number * factor <= LARGEST_SIZE:
                return round(number * factor)
    raise expected('a size such as "512 MiB" or "2 GiB", of 1 PiB at most')


BIT_RATES = {"kbit/s": 10**3, "Mbit/s": 10**6, "Gbit/s": 10**9}
HIGHEST_BIT_RATE = 10**12


def bit_rate(value: Any) -> int:
    """Bits per second of a text such as `100 Mbit/s`; a bare number has no unit and is refused."""
    if isinstance(value, str):
        for unit, factor in BIT_RATES.items():
            number = _number(value, unit)
            if number is not None and 1 <= number * factor <= HIGHEST_BIT_RATE:
                return round(number * factor)
    raise expected('bits per second such as "100 Mbit/s" or "1 Gbit/s", at most "1000 Gbit/s"')


FASTEST = 1e9


class ShareOfCapacity(float):
    """A rate that is known only after the capacity was measured: this fraction of it."""


def rate(value: Any) -> float:
    """Requests a second: a number, or a `ShareOfCapacity` for a text such as `80% of capacity`."""
    if isinstance(value, str):
        share = _number(value, r"%\s+of\s+capacity")
        if share:
            return ShareOfCapacity(share / 100)
    elif isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= FASTEST:
        return float(value)
    raise expected('requests/s above zero, at most 1e9, or a share such as "80% of capacity"')


def system_text(text: str) -> str:
    """A text that can be given to a program: the system ends it at a zero byte."""
    if "\0" in text:
        raise expected("a text without a zero byte")
    return text


ESCAPE = r"\\(?:[rnt0\\]|x[0-9A-Fa-f]{2})"


def escaped_text(text: str) -> str:
    """A text, not empty, with the escapes that `tare load tcp` reads."""
    if not re.fullmatch(rf"(?:[^\\]|{ESCAPE})+", text):
        raise expected(r"a text with no other escapes than \r, \n, \t, \0, \xHH or \\")
    return system_text(text)


def variable(name: str) -> str:
    """The name of a variable of a program's environment."""
    if not name or "=" in name:
        raise expected("a variable name without =")
    return system_text(name)


def words(value: Any) -> list[str]:
    """The words of a list, or of a text that is split as a shell would."""
    try:
        found = shlex.split(value) if isinstance(value, str) else value
    except ValueError as error:
        raise expected(f"a command ({error})") from error
    if not isinstance(found, list) or not all(isinstance(word, str) for word in found):
        raise expected("a command: a text, or a list of texts")
    return [system_text(word) for word in found]


def command(value: Any) -> list[str]:
    """The words of a command, one at least."""
    found = words(value)
    if not found:
        raise expected("a command: a text, or a list of texts")
    return found


def _known_names(words: list[str]) -> list[str]:
    for word in words:
        only_known_names(word)
    return words


def only_known_names(text: str) -> str:
    """A text in which the lab knows every name in braces."""
    return _with_names(text, SERVICE_NAMES)


def _load_words(words: list[str]) -> list[str]:
    for word in words:
        _with_names(word, (*SERVICE_NAMES, "url", "output"))
    return words


def _agent_words(words: list[str]) -> list[str]:
    for word in words:
        _with_names(word, AGENT_NAMES)
    return words


def _with_names(text: str, known: Sequence[str]) -> str:
    if (name := unknown_name(text, known)) is not None:
        names = ", ".join(f"{{{placeholder}}}" for placeholder in known)
        raise expected(
            f"one of {names} instead of {{{name}}}; if the program itself takes {{{name}}},"
            f" write {{ {name} }}"
        )
    return text


def stop_signal(value: Any) -> str:
    """A signal's name without SIG."""
    name = value.upper().removeprefix("SIG") if isinstance(value, str) else ""
    if f"SIG{name}" not in signal.Signals.__members__:
        raise expected('a signal such as "TERM" or "QUIT"')
    return name


def url_path(value: Any) -> str:
    """The path of a URL as it is sent: what is no sign of ASCII is written as %XX."""
    if not isinstance(value, str) or not re.fullmatch("/[!-~]*", value):
        raise expected('a path such as "/a?b=c" in ASCII without spaces; write others as %XX')
    return value


def absolute_path(value: Any) -> str:
    """The path of a file of another root."""
    if not isinstance(value, str) or not value.startswith("/"):
        raise expected('an absolute path such as "/etc/nginx"')
    return system_text(value)


def relative_path(value: Any) -> str:
    """The path of a file within the folder it is relative to, written in the one plain way."""
    if not isinstance(value, str) or not is_relative(value):
        raise expected('a relative path such as "conf/nginx.conf"')
    return value


DURATION = "duration"
"""The format of durations in the JSON Schema of plans."""

_DurationText = Annotated[
    str,
    Field(
        pattern=r"^\s*\d+(\.\d+)?\s*(ns|us|µs|ms|s|m|h)\s*$",
        examples=["5ms", "2s"],
        json_schema_extra={"x-tare": DURATION},
    ),
]
_SizeText = Annotated[
    str, Field(pattern=r"^\s*\d+(\.\d+)?\s*(B|KiB|MiB|GiB)\s*$", examples=["512 MiB"])
]
_BitRateText = Annotated[
    str, Field(pattern=r"^\s*\d+(\.\d+)?\s*(k|M|G)bit/s\s*$", examples=["100 Mbit/s"])
]
_Percentage = Annotated[str, Field(pattern=r"^\s*\d+(\.\d+)?\s*%\s*$", examples=["3%"])]
_Share = _Percentage | Annotated[float, Field(ge=0, le=1)]
_SomeShare = _Percentage | Annotated[float, Field(gt=0, lt=1)]
_RateText = Annotated[
    str, Field(pattern=r"^\s*\d+(\.\d+)?\s*%\s+of\s+capacity\s*$", examples=["80% of capacity"])
]
_Rate = Annotated[float, Field(gt=0, le=FASTEST)] | _RateText | None
_Words = str | Annotated[list[str], Field(min_length=1)]


def _written_as(check: Callable[[Any], Any], written: Any) -> BeforeValidator:
    """A check, and the type of what an author writes, for the JSON Schema of plans."""
    return BeforeValidator(check, json_schema_input_type=written)


Duration = Annotated[int, _written_as(duration_ns, _DurationText)]
SomeDuration = Annotated[int, _written_as(some_duration_ns, _DurationText)]
Size = Annotated[int, _written_as(size, _SizeText)]
BitRate = Annotated[int, _written_as(bit_rate, _BitRateText)]
Fraction = Annotated[float, _written_as(fraction, _Share)]
SomeFraction = Annotated[float, _written_as(some_fraction, _SomeShare)]
Positive = Annotated[int, Field(ge=1, le=1_000_000)]
Rate = Annotated[Any, _written_as(rate, _Rate)]
Command = Annotated[list[str], _written_as(command, _Words), AfterValidator(_known_names)]
LoadCommand = Annotated[list[str], _written_as(command, _Words), AfterValidator(_load_words)]
AgentCommand = Annotated[list[str], _written_as(command, _Words), AfterValidator(_agent_words)]
Signal = Annotated[str, _written_as(stop_signal, str)]
SystemText = Annotated[str, AfterValidator(system_text)]
FilledText = Annotated[SystemText, AfterValidator(only_known_names)]
EscapedText = Annotated[str, AfterValidator(escaped_text)]
Arguments = Annotated[list[str], _written_as(words, str | list[str]), AfterValidator(_known_names)]
Variables = dict[Annotated[str, AfterValidator(variable)], FilledText]
UrlPath = Annotated[str, _written_as(url_path, str)]
AbsolutePath = Annotated[str, _written_as(absolute_path, str)]
RelativePath = Annotated[str, _written_as(relative_path, str)]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
