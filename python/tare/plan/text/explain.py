# SPDX-License-Identifier: Apache-2.0
"""Turns what Pydantic found wrong into lines for the author: file, line, key, found, expected."""

import difflib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tare.plan.lines import Path, key_lines, line_of
from tare.plan.option_names import OPTIONS, option_of
from tare.plan.schema.loads import DEFAULT_TYPE
from tare.untrusted import expected, short, written

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


def explain(file: str, text: str, data: Any, errors: Sequence["ErrorDetails"]) -> str:
    """One line for all errors of one plan, each with its place; at most five of them."""
    lines = key_lines(text)
    found = [_one(file, lines, data, error) for error in errors[:5]]
    if len(errors) > len(found):
        found.append(f"and {len(errors) - len(found)} more")
    return "; ".join(found)


def _one(file: str, lines: dict[Path, int], data: Any, error: "ErrorDetails") -> str:
    context = error.get("ctx", {})
    path, around, value = _in_data((*error["loc"], *context.get("keys", ())), data)
    key = written(path) or "the plan"
    place = option_of(path) if file == OPTIONS else f"{file}:{line_of(path, lines)}: {key}"
    match error["type"]:
        case "missing":
            return f"{place}: found nothing, expected this key"
        case "extra_forbidden":
            return f"{place}: found an unknown key, expected {_known(path, around)}"
        case "union_tag_not_found":
            return f"{place}: found no type, expected type = {context['discriminator']}"
        case "union_tag_invalid":
            found = f"type {short(context['tag'])}"
            return f"{place}: found {found}, expected one of {context['expected_tags']}"
        case "expected":
            wanted = str(context["what"])
        case "too_short":
            wanted = f"at least {context['min_length']}"
        case kind:
            wanted = expected(kind, error["msg"])
    # TOML has no null: the key is absent.
    found = "nothing" if value is None else short(value)
    return f"{place}: found {found}, expected {wanted}"


def _in_data(location: Sequence[str | int], data: Any) -> tuple[Path, Any, Any]:
    """The path in the file (Pydantic's own, without the tags of unions), the table around it,
    and the value there."""
    path: Path = ()
    around = here = data
    arrived = True
    for step in location:
        default = DEFAULT_TYPE if path == ("load",) else None
        if arrived and path and isinstance(here, dict) and here.get("type", default) == step:
            arrived = False
            continue
        if step == "[key]":
            here = path[-1]
            continue
        path = (*path, step)
        around = here
        try:
            here = here[step]
        except (KeyError, IndexError, TypeError):
            here = None
        arrived = True
    return path, around, here


def _known(path: Path, around: Any) -> str:
    from tare.plan.schema.plan import Plan

    names = _keys_at(Plan.model_json_schema(), path[:-1], around)
    near = difflib.get_close_matches(str(path[-1]), names, 1)
    return near[0] if near else f"one of {', '.join(names)}"


def _keys_at(schema: dict[str, Any], path: Path, around: Any) -> list[str]:
    """The keys that the table at `path` may have, from the plan's JSON schema."""
    here: dict[str, Any] = schema
    kind = around.get("type", DEFAULT_TYPE) if isinstance(around, dict) else None
    for step in (*path, None):
        here = _resolved(here, schema, kind)
        if step is not None:
            here = here["items"] if isinstance(step, int) else here["properties"][step]
    return list(here.get("properties", {}))


def _resolved(here: dict[str, Any], schema: dict[str, Any], kind: str | None) -> dict[str, Any]:
    if "anyOf" in here:  # a table that may be absent, or a text
        here = here["anyOf"][0]
    if "discriminator" in here:
        mapping = here["discriminator"]["mapping"]
        here = {"$ref": mapping.get(kind) or next(iter(mapping.values()))}
    if "$ref" in here:
        here = schema["$defs"][here["$ref"].rsplit("/", 1)[1]]
    return here
