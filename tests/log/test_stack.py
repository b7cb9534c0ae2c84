# SPDX-License-Identifier: Apache-2.0
"""Calls that log run on the small stacks that signal handlers have."""

import os
import subprocess
from collections.abc import Callable
from itertools import product
from pathlib import Path

from tests.log.conftest import TARE_LOG
from tests.waiting import SECONDS

KB = 1024
HANDLERS = range(1, 12)
DROP, WAIT, OVERWRITE = 1, 2, 3
"""Policies."""
KINDS = range(3)
"""A small number, a large number, and bytes."""
FOX_END = 11
FILLING = {2, 3, 4, 10, FOX_END}
"""Handlers that write every event into the ring."""
Case = tuple[int, int, int]


def measured(
    program: Path, policies: list[int], mode: str, *before: str | Path, **variables: str
) -> dict[Case, tuple[int, bool]]:
    """By handler, policy and kind: the bytes of stack, and whether a call had to wait or
    connected."""
    cases = list(product(HANDLERS, policies, KINDS))
    script = f'for case; do "$0" $case {mode} || exit; done'
    words = [" ".join(map(str, case)) for case in cases]
    done = subprocess.run(
        [*before, "sh", "-c", script, program, *words],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | variables,
        timeout=SECONDS,
    )
    lines = [line.split() for line in done.stdout.splitlines()]
    return {case: (int(used), full == "1") for case, (used, full) in zip(cases, lines, strict=True)}


def largest(used: dict[Case, tuple[int, bool]]) -> int:
    return max(number for number, _ in used.values())


def recording(folder: Path) -> list[str | Path]:
    return [TARE_LOG, "run", "--out", folder / "events.log", "--"]


def test_no_call_that_logs_takes_more_than_a_kilobyte_of_stack(
    compiled: Callable[[str], Path], tmp_path: Path
) -> None:
    used = measured(compiled("stack"), [DROP], "", *recording(tmp_path))
    assert largest(used) <= KB, used


def test_first_call_in_a_child_takes_two_kilobytes_of_stack(
    compiled: Callable[[str], Path], tmp_path: Path
) -> None:
    used = measured(compiled("stack"), [DROP], "-1 fork", *recording(tmp_path))
    assert largest(used) <= 2.1 * KB, used


def test_call_that_waits_for_room_takes_a_kilobyte_of_stack(
    compiled: Callable[[str], Path], tmp_path: Path
) -> None:
    program, small = compiled("stack"), {"TARE_LOG_RING": "64K"}
    used = measured(program, [WAIT], "$PPID", *recording(tmp_path), **small)
    assert all(full for (handler, _, _), (_, full) in used.items() if handler in FILLING), used
    ends = {case: used.pop(case) for case in list(used) if case[0] == FOX_END}
    assert largest(used) <= KB, used
    assert largest(ends) <= 1.1 * KB, ends


def test_call_that_offers_memory_again_takes_little_more_stack(
    compiled: Callable[[str], Path], tmp_path: Path
) -> None:
    """The ring is full: its oldest events are overwritten, or the new event is lost."""
    variables = {"TARE_LOG": str(tmp_path / "socket"), "TARE_LOG_RING": "64K"}
    used = measured(compiled("stack"), [WAIT, OVERWRITE], "0", **variables)
    assert all(full for (handler, _, _), (_, full) in used.items() if handler in FILLING), used
    ends = {case: used.pop(case) for case in list(used) if case[0] == FOX_END}
    assert largest(used) <= 1.2 * KB, used
    assert largest(ends) <= 1.4 * KB, ends
