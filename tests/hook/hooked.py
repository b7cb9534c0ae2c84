# SPDX-License-Identifier: Apache-2.0
"""Programs with and without the hook, and what it saw of them."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tare.native import native

COMMAND = native("bin", "tare-hook")
LIBRARY = native("lib", "libtare_hook.so")
TIMEOUT = 60


@dataclass(frozen=True)
class Behaviour:
    """What anyone can see of a program from outside."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Seen:
    """A run under the hook: its behaviour, events, and the statistics of `--stats --json`."""

    behaviour: Behaviour
    events: list[dict[str, Any]] = field(default_factory=list)
    stats: dict[str, Any] = field(default_factory=dict)

    def keywords(self, direction: str) -> list[tuple[str, int]]:
        """Keyword and offset of the events in one direction, in their order."""
        events = [event for event in self.events if event["direction"] == direction]
        return [(event["keyword"], event["offset"]) for event in events]


def rules(*keywords: str, **also: str) -> str:
    """A rule for a rules file."""
    lines = [f'{key} = "{value}"' for key, value in also.items()]
    return "\n".join(["[[rule]]", f"keywords = {json.dumps(keywords)}", *lines, ""])


def plain(
    command: Sequence[str | Path],
    folder: Path,
    env: Mapping[str, str] | None = None,
    stdin: str = "",
) -> Behaviour:
    """The program alone."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=os.environ | (env or {}),
        input=stdin,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=TIMEOUT,
        check=False,
    )
    # As tare-hook and shells say it: 128 + signal.
    code = done.returncode if done.returncode >= 0 else 128 - done.returncode
    return Behaviour(code, done.stdout, done.stderr)


def inert(command: Sequence[str | Path], folder: Path) -> Behaviour:
    """The program with the library in it, but no tare-hook: everything is forwarded."""
    return plain(command, folder, {"LD_PRELOAD": LIBRARY})


def hooked(
    command: Sequence[str | Path], folder: Path, text: str, before: Sequence[str] = ()
) -> Seen:
    """The program under rules; that it behaves the same says nothing if it ran without them.

    `before` is what tare-hook itself is put behind.
    """
    (folder / "rules.toml").write_text(text)
    events = folder / "events.jsonl"
    events.unlink(missing_ok=True)
    options = ["--rules", str(folder / "rules.toml"), "--events", str(events), "--stats", "--json"]
    behaviour = plain([*before, COMMAND, *options, "--", *command], folder)
    *err, stats = behaviour.err.splitlines(keepends=True)
    seen = Seen(
        Behaviour(behaviour.code, behaviour.out, "".join(err)),
        [json.loads(line) for line in events.read_text().splitlines()],
        json.loads(stats),
    )
    assert seen.stats["programs"] > 0, f"the library did not work: {behaviour.err}"
    return seen
