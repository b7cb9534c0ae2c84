# SPDX-License-Identifier: Apache-2.0
"""Values as a person writes them in a plan: durations, fractions, rates, commands."""

import re
import shlex
import signal
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints
from pydantic_core import PydanticCustomError

from tare.untrusted import is_relative

UNITS_NS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9}
UNITS_NS["h"] = 60 * UNITS_NS["m"]
LONGEST_NS = 10 * 365 * 24 * UNITS_NS["h"]


def expected(what: str, *keys: str) -> PydanticCustomError:
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
    """A fraction from 0 to 1, written as one or as a percentage."""
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
    raise expected(
        'requests a second above zero, at most 1e9, or a share such as "80% of capacity"'
    )


def system_text(text: str) -> str:
    """A text that can be given to a program: the system ends it at a zero byte."""
    if "\0" in text:
        raise expected("a text without a zero byte")
    return text


ESCAPE = r"\\(?:[rnt0\\]|x[0-9A-Fa-f]{2})"


def escaped_text(text: str) -> str:
    """A text, not empty, with the escapes that `tare load tcp` reads."""
    if not re.fullmatch(rf"(?:[^\\]|{ESCAPE})+", text):
        raise expected(r"a text in which a backslash begins \r, \n, \t, \0, \xHH or \\")
    return system_text(text)


def variable(name: str) -> str:
    """The name of a variable of a program's environment."""
    if not name or "=" in name:
        raise expected("a name of a variable, without =")
    return system_text(name)


def command(value: Any) -> list[str]:
    """The words of a command: a list of them, or a text that is split as a shell would."""
    try:
        words = shlex.split(value) if isinstance(value, str) else value
    except ValueError as error:
        raise expected(f"a command ({error})") from error
    if not isinstance(words, list) or not words or not all(isinstance(word, str) for word in words):
        raise expected("a command: a text, or a list of texts")
    return [system_text(word) for word in words]


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


def relative_path(value: Any) -> str:
    """The path of a file within the folder it is relative to, written in the one plain way."""
    if not isinstance(value, str) or not is_relative(value):
        raise expected('a relative path such as "conf/nginx.conf"')
    return value


Duration = Annotated[int, BeforeValidator(duration_ns)]
SomeDuration = Annotated[int, BeforeValidator(some_duration_ns)]
Fraction = Annotated[float, BeforeValidator(fraction)]
SomeFraction = Annotated[float, BeforeValidator(some_fraction)]
Positive = Annotated[int, Field(ge=1, le=1_000_000)]
Rate = Annotated[Any, BeforeValidator(rate)]
Command = Annotated[list[str], BeforeValidator(command)]
Signal = Annotated[str, BeforeValidator(stop_signal)]
SystemText = Annotated[str, AfterValidator(system_text)]
EscapedText = Annotated[str, AfterValidator(escaped_text)]
Variables = dict[Annotated[str, AfterValidator(variable)], SystemText]
UrlPath = Annotated[str, BeforeValidator(url_path)]
RelativePath = Annotated[str, BeforeValidator(relative_path)]
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
