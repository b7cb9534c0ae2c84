# SPDX-License-Identifier: Apache-2.0
"""Where in a TOML text each key stands, so that errors can name the line."""

import tomllib
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

Path = tuple[str | int, ...]


def key_lines(text: str) -> dict[Path, int]:
    """Maps the path of every key, table and array element to its first line, from 1.

    `text` must be valid TOML. Elements of arrays are numbered from 0, as in the parsed data.
    """
    import tree_sitter_toml
    from tree_sitter import Language, Parser

    parser = Parser(Language(tree_sitter_toml.language()))
    lines: dict[Path, int] = {}
    sizes: dict[Path, int] = {}
    for node in parser.parse(text.encode()).root_node.named_children:
        if node.type == "pair":
            _pair((), node, lines)
        elif node.type in ("table", "table_array_element"):
            head, *pairs = [child for child in node.named_children if child.type != "comment"]
            path = _table(list(_keys(head)), node.type == "table_array_element", sizes)
            for length in range(1, len(path) + 1):
                lines.setdefault(path[:length], _line(head))
            for pair in pairs:
                _pair(path, pair, lines)
    return lines


def line_of(path: Path, lines: dict[Path, int]) -> int:
    """The line of a path, or of the nearest thing around it that is written in the file."""
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return 1


def _table(keys: list[str], is_element: bool, sizes: dict[Path, int]) -> Path:
    """The path a table's header means: a name of an array of tables stands for its last element."""
    path: Path = ()
    for position, key in enumerate(keys):
        path = (*path, key)
        if is_element and position == len(keys) - 1:
            sizes[path] = sizes.get(path, 0) + 1
        if path in sizes:
            path = (*path, sizes[path] - 1)
    return path


def _pair(parent: Path, node: "Node", lines: dict[Path, int]) -> None:
    key, value = [child for child in node.named_children if child.type != "comment"]
    path = parent
    for name in _keys(key):
        path = (*path, name)
        lines.setdefault(path, _line(key))
    _value(path, value, lines)


def _value(path: Path, node: "Node", lines: dict[Path, int]) -> None:
    children = [child for child in node.named_children if child.type != "comment"]
    if node.type == "inline_table":
        for pair in children:
            if pair.type == "pair":  # TOML 1.1 allows more here than the grammar knows
                _pair(path, pair, lines)
    elif node.type == "array":
        for index, element in enumerate(children):
            lines[*path, index] = _line(element)
            _value((*path, index), element, lines)


def _keys(node: "Node") -> Iterator[str]:
    if node.type == "dotted_key":
        for child in node.named_children:
            yield from _keys(child)
    else:
        text = (node.text or b"").decode()
        yield text if node.type == "bare_key" else next(iter(tomllib.loads(f"{text} = 0")))


def _line(node: "Node") -> int:
    return int(node.start_point[0]) + 1
