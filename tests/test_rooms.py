# SPDX-License-Identifier: Apache-2.0
"""Rooms of crates import each other in one direction, and files import each other in no circle.

import-linter checks the rooms of Python.
"""

import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

CRATES = Path(__file__).parents[1] / "crates"
Module = tuple[str, ...]
# By crate and by room with rooms inside: a room imports only rooms to its right.
ROOMS: dict[str, dict[Module, list[str]]] = {
    "log/command": {
        (): ["recover", "show", "export", "sync", "collector", "reader"],
        ("collector",): ["accept", "producer", "rules", "quotas"],
    },
    "log/producer": {(): ["events", "segment", "program"]},
    "load": {
        (): [
            "fingerprint", "flows", "http2", "workers", "http", "tcp", "arguments", "net", "record",
            "schedule",
        ],
    },
    "map": {(): ["show", "loader", "sock_diag", "edges"]},
    "hook/preload": {(): ["calls", "search", "record", "memory"]},
    "link/preload": {
        (): ["calls", "lifecycle", "epoll", "stream", "links", "descriptors", "state"],
    },
}  # fmt: skip
# Files of a crate's root that bring its rooms together.
ENTRIES = {
    "log/command": {("main",), ("arguments",)},
    "log/producer": {("lib",), ("channels",), ("status",), ("restrictions",)},
    "load": {("main",), ("run",), ("measurement",), ("target",), ("protocol",)},
    "map": {("main",), ("lib",)},
    "hook/preload": {("lib",), ("attach",)},
    "link/preload": {("lib",), ("attach",)},
}


def crates() -> list[str]:
    manifests = CRATES.rglob("Cargo.toml")
    return sorted(path.parent.relative_to(CRATES).as_posix() for path in manifests)


def modules(crate: str) -> dict[Module, Path]:
    root = CRATES / crate / "src"
    names = {path: path.relative_to(root).with_suffix("").parts for path in root.rglob("*.rs")}
    return {
        parts[:-1] if parts[-1] == "mod" else parts: path for path, parts in sorted(names.items())
    }


def expanded(path: str) -> Iterator[str]:
    """The paths that `a::{b, c::{d, e}}` stands for."""
    begin, brace, rest = path.partition("{")
    if not brace:
        yield path.strip()
        return
    depth, item = 0, ""
    for letter in rest:
        if depth == 0 and letter in ",}":
            yield from (begin.strip() + name for name in expanded(item))
            item = ""
        else:
            item += letter
        depth += (letter == "{") - (letter == "}")
        if depth < 0:
            return


def imports(own: Module, path: Path, known: dict[Module, Path]) -> Iterator[Module]:
    """The files that a file names by `crate::` or `super::`."""
    code = re.split(
        r"^#\[cfg\((?:all\()?test\b.*\n(?:#.*\n)*mod \w+ \{", path.read_text(), flags=re.MULTILINE
    )[0]
    text = re.sub(r"^\s*//.*", "", code, flags=re.MULTILINE)
    groups = re.findall(r"\buse ([\w:]+::\{[^;]*\})", text)
    names_of_groups = "\n".join(name for group in groups for name in expanded(group))
    for begin, names in re.findall(
        r"\b(crate|(?:super::)*super)((?:::\w+)+)", text + names_of_groups
    ):
        above = begin.count("super")
        base: Module = own[: len(own) - above] if above else ()
        parts = (*base, *names.split("::")[1:])
        found = next(
            parts[:end] for end in range(len(parts), -1, -1) if not end or parts[:end] in known
        )
        if found and found != own:
            yield found


def is_within(module: Module, room: Module) -> bool:
    return module[: len(room)] == room


@pytest.mark.parametrize("crate", ROOMS)
def test_rooms_import_each_other_in_one_direction(crate: str) -> None:
    known = modules(crate)
    for around, rooms in ROOMS[crate].items():
        depth = len(around)
        rank = {room: place for place, room in enumerate(rooms)}
        inside = [module for module in known if is_within(module, around) and len(module) > depth]
        for module in inside:
            for other in imports(module, known[module], known):
                if len(other) <= depth or not is_within(other, around) or other[depth] not in rank:
                    continue
                own = rank.get(module[depth])
                is_entry = own is None and (depth > 0 or module in ENTRIES[crate])
                assert is_entry or (own is not None and own <= rank[other[depth]]), (
                    f"{'::'.join(module)} imports {'::'.join(other)}"
                )


@pytest.mark.parametrize("crate", crates())
def test_no_files_import_each_other_in_a_circle(crate: str) -> None:
    known = modules(crate)
    order = TopologicalSorter[Module]()
    for module, path in known.items():
        for other in imports(module, path, known):
            # A file may be split into files below it, which share what it keeps private.
            if not is_within(module, other) and not is_within(other, module):
                order.add(module, other)
    order.prepare()


@pytest.mark.parametrize("crate", ROOMS)
def test_every_room_states_its_duty_in_its_first_line(crate: str) -> None:
    root = CRATES / crate / "src"
    for around, rooms in ROOMS[crate].items():
        for room in rooms:
            lines = root.joinpath(*around, room, "mod.rs").read_text().splitlines()
            assert lines[1].startswith("//! "), room
