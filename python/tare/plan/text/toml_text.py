# SPDX-License-Identifier: Apache-2.0
"""Writes the data of a plan as TOML for people: tables under headers, one key per line."""

import json
from collections.abc import Mapping
from typing import Any


def toml_text(data: Mapping[str, Any]) -> str:
    """The TOML of `data`: plain keys, then a header for each table, each element of a list of
    tables and each table within those; everything deeper is written inline."""
    plain = {key: value for key, value in data.items() if not _has_header(value)}
    parts = [keys(plain)]
    for name, value in data.items():
        if isinstance(value, dict):
            parts += _table(name, value)
        elif _has_header(value):
            parts += [f"[[{_key(name)}]]\n{keys(element)}" for element in value]
    return "\n".join(part for part in parts if part)


def keys(table: Mapping[str, Any]) -> str:
    """One line `key = value` for each key of a table."""
    return "".join(f"{_key(key)} = {value_text(value)}\n" for key, value in table.items())


def value_text(value: object) -> str:
    """A value of TOML, in one line unless it is a text of several lines."""
    if isinstance(value, bool):
        return str(value).lower()
    if value == {}:
        return "{}"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(k)} = {value_text(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(value_text, value)) + "]"
    return _string(value) if isinstance(value, str) else repr(value)


def _has_header(value: object) -> bool:
    elements = value if isinstance(value, list) and value else [value]
    return all(isinstance(element, dict) for element in elements)


def _table(name: str, table: Mapping[str, Any]) -> list[str]:
    """A table, and after it those of its tables that hold texts of several lines."""
    long = {
        key: value
        for key, value in table.items()
        if isinstance(value, dict) and any("\n" in str(text) for text in value.values())
    }
    header = _key(name)
    rest = {key: value for key, value in table.items() if key not in long}
    parts = [f"[{header}]\n{keys(rest)}"]
    return parts + [f"[{header}.{_key(key)}]\n{keys(value)}" for key, value in long.items()]


def _key(name: str) -> str:
    bare = name and name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    return name if bare else _one_line(name)


def _one_line(text: str) -> str:
    if "'" not in text and ("\\" in text or '"' in text) and text.isprintable():
        return f"'{text}'"
    quoted = json.dumps(text, ensure_ascii=False)
    return "".join(one if one.isprintable() else _escaped(one) for one in quoted)


def _escaped(character: str) -> str:
    code = ord(character)
    if 0xD800 <= code < 0xE000:
        # TOML has no escape for half a character.
        return character
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _string(text: str) -> str:
    lines = text.split("\n")
    literal = "'''" not in text and not text.endswith("'")
    if literal and len(lines) > 1 and all(x.replace("\t", "").isprintable() for x in lines):
        return f"'''\n{text}'''"
    return _one_line(text)
