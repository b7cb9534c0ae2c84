# SPDX-License-Identifier: Apache-2.0
"""Stops an experiment that fails from its start, before every block fails in the same way."""

import shlex
from collections.abc import Collection, Sequence
from pathlib import Path

from tare.errors import TareError
from tare.lab.processes.logs import last_lines
from tare.samples.manifest import Manifest, RunEntry

FIRST_BLOCKS = 2
"""One failure of a condition may be chance. Without a baseline nothing can be compared, so there
one failure is enough."""
SHOWN_LINES = 5


def failed_early(runs: Sequence[RunEntry], baseline: str, first: int = 1) -> list[list[RunEntry]]:
    """The failed runs of each condition that has no valid run at the start.

    The start is block `first` for the baseline, and two blocks for any other condition and for the
    control. Every environment counts by itself.
    """
    begun: dict[tuple[str, str], list[RunEntry]] = {}
    for run in runs:
        if first <= run.block < first + (1 if run.condition == baseline else FIRST_BLOCKS):
            begun.setdefault((run.environment, run.condition), []).append(run)
    return [
        first
        for (_, condition), first in begun.items()
        if len(first) == (1 if condition == baseline else FIRST_BLOCKS)
        and not any(run.valid for run in first)
    ]


def stop_if_failed_early(
    manifest: Manifest, just_done: Collection[int], folder: Path, first: int = 1
) -> None:
    """Raises TareError where runs that were just carried out show that a condition fails always,
    from block `first` on, which began the experiment or what is resumed of it.

    Its message has the reason, the end of the condition's logs, and their paths.
    """
    manifest = manifest.as_compared()
    for failed in failed_early(manifest.runs, manifest.baseline, first):
        if any(run.run in just_done for run in failed):
            last = failed[-1]
            logs = [folder / log for log in last.logs]
            reason = last.reason or ""
            what = f"{_name(last, manifest)} failed in {_when(failed)}: {reason}"
            again = f"continue with: tare run --resume {shlex.quote(str(folder))}"
            remedy = (
                f"finished runs are kept; fix the cause outside of the plan and {again}"
                if any(run.valid for run in manifest.runs)
                else "nothing was measured; fix the cause and repeat the command"
            )
            raise TareError("; ".join([what, *_ends(logs, reason), remedy]))


def _name(run: RunEntry, manifest: Manifest) -> str:
    condition = run.condition
    joined = "in" if manifest.compare == "conditions" else "with"
    where = f" {joined} {run.environment}" if len(manifest.environments) > 1 else ""
    if condition == manifest.control:
        return f"the control{where}"
    role = "the baseline " if condition == manifest.baseline else ""
    return f"{role}'{condition}'{where}"


def _when(failed: Sequence[RunEntry]) -> str:
    blocks = [run.block for run in failed]
    if blocks[0] > 1:
        return f"block{'s' * (len(blocks) > 1)} {' and '.join(map(str, blocks))}"
    return "the first block" if len(blocks) == 1 else "the first two blocks"


def _ends(logs: Sequence[Path], reason: str) -> list[str]:
    """How each log ends that has anything in it: the service's, its proxies', its load's.

    Without its last line where the reason quotes that.
    """
    lines = {log: last_lines(log, SHOWN_LINES) for log in logs}
    ends = []
    for log, said in lines.items():
        if said:
            more = said[:-1] if f": {said[-1]}" in reason else said
            ends.append(f"{log} ends with: {' | '.join(more)}" if more else f"see {log}")
    return ends or [f"{log} is empty" for log in logs[:1]]
