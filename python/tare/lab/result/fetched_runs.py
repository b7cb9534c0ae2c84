# SPDX-License-Identifier: Apache-2.0
"""Runs whose spans were fetched from elsewhere, as a result folder: any engine can compare them."""

from contextlib import closing
from pathlib import Path

from tare.lab.result.file_ownership import known_users, require_trusted, resolved
from tare.lab.result.folder import ResultFolder, RunKey
from tare.samples import read_load_output
from tare.samples.manifest import NAME, Condition, Manifest, RunEntry

ENVIRONMENT = "fetched"
PLAN = "# There was no plan: `tare spans fetch` saved these runs.\n"
BUDGET = 0.03


def add_run(folder: Path, condition: str, file: Path) -> int:
    """Adds the spans of a file as the next run of a condition, and returns its number.

    The first condition is the baseline of the result. Raises InputError if the folder has something
    else than such a result, or if the file cannot be read.
    """
    import pyarrow.compute as pc

    spans = read_load_output(file)
    users = known_users()
    folder = resolved(users, folder)
    require_trusted(users, folder)
    with closing(ResultFolder(folder)) as result:
        if (folder / NAME).exists():
            result.open()
        else:
            result.create(PLAN, _manifest(folder.name, condition))
        manifest = result.manifest
        number = 1 + max((run.run for run in manifest.runs), default=0)
        block = 1 + sum(run.condition == condition for run in manifest.runs)
        key = RunKey(manifest.experiment, ENVIRONMENT, condition, block, number, "")
        result.write("samples", spans, key)
        started = pc.min(spans["start_ns"]).as_py()
        ended = pc.max(pc.add(spans["start_ns"], spans["duration_ns"])).as_py()
        manifest.runs.append(
            RunEntry(
                run=number, block=block, environment=ENVIRONMENT, condition=condition, valid=True,
                started_ns=started, duration_ns=ended - started, requests=spans.num_rows,
                errors=spans.num_rows - (pc.sum(spans["ok"]).as_py() or 0),
            )
        )  # fmt: skip
        manifest.blocks = max(manifest.blocks, block)
        if condition not in [known.name for known in manifest.conditions]:
            manifest.conditions.append(Condition(name=condition))
        result.save()
    return number


def _manifest(name: str, baseline: str) -> Manifest:
    return Manifest(
        experiment=name,
        name=name,
        budget=BUDGET,
        baseline=baseline,
        conditions=[Condition(name=baseline)],
        environments=[ENVIRONMENT],
        runs=[],
    )
