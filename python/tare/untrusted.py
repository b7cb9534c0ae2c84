# SPDX-License-Identifier: Apache-2.0
"""Data files that anybody may have written: what is read of them is limited, and stays inside."""

from __future__ import annotations

import json
import os
import re
import stat
import tomllib
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tare.errors import InputError

if TYPE_CHECKING:
    from pydantic import ValidationError

MEBIBYTE = 1 << 20
PLAN_BYTES = 4 * MEBIBYTE
DEEPEST = 32
"""Levels of JSON and TOML."""
TOO_DEEP = f"is nested more than {DEEPEST} levels deep"
MOST_PARTS = 100
"""Of a dotted key of TOML."""
_PART = r"""(?:(?<![\w-])[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*"""
_LONG_KEY = re.compile(rf"(?:{_PART}\.[ \t]*){{{MOST_PARTS}}}", re.ASCII)
LARGEST = {int: 2**64, float: 1e100}
"""Times are 64-bit numbers of nanoseconds."""
_SHOWN = 60
_LISTED = 12
_EXPECTED = {
    "string_type": "a text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "dataclass_type": "a table",
    "missing": "this key",
    "extra_forbidden": "no such key",
}


def read_bytes(path: Path, most: int, *, follow: bool = False) -> bytes:
    """The contents of a regular file that is no link, unless links may be followed.

    Raises OSError, or ValueError where it is another kind of file or larger than `most` bytes.
    """
    if not follow and path.is_symlink():
        raise ValueError("is a symbolic link; put the file itself there")
    # A pipe without a writer would block.
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    with os.fdopen(os.open(path, flags), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise ValueError("is not a regular file")
        if status.st_size > most:
            raise ValueError(f"is larger than {most // MEBIBYTE} MiB")
        return file.read(most)


def read_json(path: Path, most: int) -> Any:
    """The JSON in a file, with ? for what is no Unicode.

    Raises as `read_bytes`, and ValueError for JSON beyond the limits.
    """
    text = read_bytes(path, most)
    try:
        data = json.loads(text)
        if re.search(rb"\\u[dD]", text):  # half a surrogate pair, maybe, which no file can have
            data = json.loads(json.dumps(data, ensure_ascii=False).encode(errors="replace"))
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    if any(_beyond(one) for level in _levels(data) for one in level):
        raise ValueError("has a number that is not finite, or too large")
    return data


def toml_table(text: str) -> dict[str, Any]:
    """The table in a text of TOML. Raises ValueError for anything else, and beyond the limits."""
    # The parser needs memory that grows with the square of the number of parts.
    if _LONG_KEY.search(text):
        raise ValueError(f"a key has more than {MOST_PARTS} parts")
    try:
        table = tomllib.loads(text)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    deque(_levels(table), maxlen=0)
    return table


def _levels(data: Any) -> Iterator[list[Any]]:
    """All values, level by level. Raises ValueError where there are too many levels."""
    level = [data]
    for _ in range(DEEPEST):
        yield level
        level = [inner for one in level for inner in _inside(one)]
        if not level:
            return
    raise ValueError(TOO_DEEP)


def _beyond(value: Any) -> bool:
    largest = LARGEST.get(type(value))
    return largest is not None and not -largest <= value <= largest


def _inside(value: Any) -> Sequence[Any]:
    if isinstance(value, dict):
        return [*value.values()]
    return value if isinstance(value, list) else ()


def regular_files(folder: Path) -> Iterator[Path]:
    """All regular files below a folder of a result.

    Raises InputError where it, or something in it, is a symbolic link: that can lead outside.
    """
    left = [folder]
    while left:
        here = left.pop()
        if here.is_symlink():
            raise InputError(f"{here}: is a symbolic link; put the file or folder itself there")
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(here) as entries:
            for entry in entries:
                if entry.is_file(follow_symlinks=False):
                    yield Path(entry.path)
                else:
                    left.append(Path(entry.path))


def is_relative(path: str) -> bool:
    """Whether a path names something below the folder that it starts from."""
    return "\0" not in path and not {"", ".", ".."} & {*path.split("/")}


def explained(error: ValidationError) -> str:
    """The first error of a model, in one line: where, what was found, what was expected."""
    first = error.errors(include_url=False)[0]
    where = written(first["loc"]) or "the file"
    found = "nothing" if first["type"] == "missing" else short(first["input"])
    return f"{where}: found {found}, expected {expected(first['type'], first['msg'])}"


def expected(kind: str, message: str) -> str:
    """What Pydantic expected, by the type and the message of its error."""
    if kind in _EXPECTED:
        return _EXPECTED[kind]
    for beginning in ("Input should be ", "Value error, ", "String should "):
        message = message.removeprefix(beginning)
    return message


def written(place: Sequence[str | int]) -> str:
    """`("runs", 0, "block")` as `runs[1].block`: people count from 1."""
    text = "".join(f"[{step + 1}]" if isinstance(step, int) else f".{step}" for step in place)
    return text.removeprefix(".")


def listed(names: Sequence[str]) -> str:
    """The first of a file's names, for errors: it may have very many, or long names."""
    more = ", ..." if len(names) > _LISTED else ""
    return ", ".join(name[:_SHOWN] for name in names[:_LISTED]) + more


def short(value: object) -> str:
    """The beginning of a value as JSON."""
    text = json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."
