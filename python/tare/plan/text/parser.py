# SPDX-License-Identifier: Apache-2.0
"""Reads a plan's file; every error names file, line, key, what was found and what was expected."""

import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from tare.errors import InputError
from tare.plan.lines import Path as KeyPath
from tare.plan.schema.plan import Plan
from tare.plan.text.compose import composed
from tare.plan.text.explain import explain
from tare.plan.text.toml_text import toml_text
from tare.untrusted import MEBIBYTE, PLAN_BYTES, read_bytes, toml_table

EXTENDS = "extends"
"""The key of a plan that starts from another plan."""


def load(path: Path, settings: Mapping[str, int] | None = None) -> Plan:
    """The plan in a TOML file; `settings` replace keys of its top level (`blocks`, `smoke`).

    Raises InputError for a file that cannot be read or is not a plan.
    """
    written, folder = _read(path, _named), path.resolve().parent
    text = _composed(_extended(written, path), str(path), folder)
    return _parsed(text, written, str(path), folder, settings)


def parse(text: str, file: str, folder: Path, settings: Mapping[str, int] | None = None) -> Plan:
    """The plan in `text`; `file` is its name in errors, `folder` where its relative paths start."""
    return _parsed(_composed(text, file, folder), text, file, folder, settings)


def _read(path: Path, contents: Callable[[Path], bytes]) -> str:
    try:
        return contents(path).decode().replace("\r\n", "\n")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; give the path of a plan") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 at byte {error.start}; a plan is TOML") from error
    except ValueError as error:
        raise InputError(f"{path}: {error}") from error


def _named(path: Path) -> bytes:
    """The contents of what a person named, which may be a pipe."""
    with path.open("rb") as file:
        data = file.read(PLAN_BYTES + 1)
    if len(data) > PLAN_BYTES:
        raise ValueError(f"is larger than {PLAN_BYTES // MEBIBYTE} MiB, the limit for plans")
    return data


def _extended_file(path: Path) -> bytes:
    """The contents of what a plan names, and a stranger may have written the plan."""
    return read_bytes(path, PLAN_BYTES, follow=True)


def _extended(text: str, path: Path) -> str:
    """The text of a plan with the keys of the plan that it extends; itself if it extends none."""
    data = _data(text, str(path))
    if EXTENDS not in data:
        return text
    name = data.pop(EXTENDS)
    if not isinstance(name, str) or not name or Path(name).name != name:
        raise InputError(f"{path}: {EXTENDS}: expected the name of a plan in the same folder")
    if "name" not in data:
        raise InputError(f"{path}: name: found nothing, expected a name, which its results have")
    base = path.parent / name
    below = _read(base, _extended_file)
    base_data = _data(below, str(base))
    if EXTENDS in base_data:
        raise InputError(f"{path}: {EXTENDS}: {base} extends another plan; extend that plan")
    _validated(_composed(below, str(base), path.resolve().parent), below, str(base))
    return toml_text(merged(base_data, data))


def _composed(text: str, file: str, folder: Path) -> str:
    """The text of a plan with the services of the Compose file that it names."""
    data = composed(_data(text, file), folder, file)
    return text if data is None else toml_text(data)


def merged(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of both tables, and where both have a key, its own value.

    Tables in them are merged, too, unless they have another type.
    """
    found = {**base}
    for key, value in own.items():
        below = base.get(key)
        if isinstance(value, dict) and isinstance(below, dict):
            is_other = "type" in value and value["type"] != below.get("type")
            found[key] = value if is_other else merged(below, value)
        else:
            found[key] = value
    return found


def _parsed(
    text: str, written: str, file: str, folder: Path, settings: Mapping[str, int] | None
) -> Plan:
    is_extended = text != written
    plan = _validated(text, written, file)
    for key, value in (settings or {}).items():
        text = _with_setting(text, key, value)
        lines = written if is_extended else text
        plan = _validated(text, lines, f"{file} with {key} = {value}")
    plan._file, plan._written = file, written
    plan._folder = folder
    plan._text = text
    return plan


def refused(plan: Plan, place: KeyPath, error: PydanticCustomError) -> InputError:
    """The error of a plan that is well written but cannot be followed on this machine.

    `place` leads to the value, or to the table whose keys the error names (see `expected`); as in
    Pydantic's own, the name of a table's type may follow the table. The error shows the value as it
    is carried out, the default too, and the line where the user wrote its key.
    """
    file, text = plan.source
    details = ErrorDetails(
        type=error.type, loc=place, msg=error.message(), input=None, ctx=error.context or {}
    )
    data = {**plan.model_dump(mode="json"), **tomllib.loads(plan.text)}
    return InputError(explain(file, text, data, [details]))


def _data(text: str, file: str) -> dict[str, Any]:
    try:
        return toml_table(text)
    except ValueError as error:  # numbers of too many digits, too, and depth
        line = re.search(r"at line (\d+)", str(error))
        place = line[1] if line else text.count("\n") + 1
        raise InputError(f"{file}:{place}: not TOML: {error}") from error


def _validated(text: str, written: str, file: str) -> Plan:
    """The plan in `text`; its errors name lines of what the user has `written`."""
    data = _data(text, file)
    try:
        return Plan.model_validate(data)
    except ValidationError as error:
        raise InputError(explain(file, written, data, error.errors())) from error


def _with_setting(text: str, key: str, value: int) -> str:
    """`text` with a number or truth value of its top level replaced, or put before all else."""
    head = re.match(r"(?:(?!\s*\[).*\n?)*", text)
    top = head.group() if head else ""
    written = str(value).lower()
    old = r"(?:\d[\d_]*|true|false)"
    changed, count = re.subn(rf"(?m)^(\s*{key}\s*=\s*){old}", rf"\g<1>{written}", top, count=1)
    return (changed if count else f"{key} = {written}\n{top}") + text[len(top) :]
