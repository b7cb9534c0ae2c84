# SPDX-License-Identifier: Apache-2.0
"""tare-load and other programs, run to their end, in turns."""

import json
import os
import random
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from bench.turns import on_cpu

from tare.native import native

LOAD = native("bin", "tare-load")
SERVICE_CPU, LOAD_CPU = 0, 1
Value = TypeVar("Value")


@dataclass(frozen=True)
class Turns:
    """How often, how long, and where the files go."""

    pairs: int
    seconds: int
    folder: Path


def in_turns(subjects: Mapping[str, Callable[[], Value]], turns: int) -> dict[str, list[Value]]:
    """What each subject returns, one value a turn, in random order."""
    order = random.Random(turns)
    values: dict[str, list[Value]] = {name: [] for name in subjects}
    for _ in range(turns):
        for name in order.sample([*subjects], len(subjects)):
            values[name].append(subjects[name]())
    return values


def tare_load(
    options: list[str],
    folder: Path,
    variables: Mapping[str, str] | None = None,
    protocol: str = "http",
) -> dict[str, float]:
    """Runs tare-load, which records every request, and returns what it says of its target."""
    out = ["--threads", "1", "--out", str(folder / "samples.arrow"), "--json"]
    command = on_cpu(LOAD_CPU, [str(LOAD), protocol, *options, *out])
    found = json.loads(output(command, variables))["targets"][0]
    if found["errors"]:
        raise SystemExit(f"{' '.join(command)}: {found['errors_by_kind']}")
    return dict(found)


def output(command: list[str], variables: Mapping[str, str] | None = None) -> str:
    """What a command prints; one that fails ends the bench."""
    environment = os.environ | (variables or {})
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: exit code {done.returncode}: {done.stderr[-500:]}")
    return done.stdout
