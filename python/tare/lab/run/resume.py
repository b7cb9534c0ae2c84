# SPDX-License-Identifier: Apache-2.0
"""Goes on with an experiment that began before: its plan, its order, and what is missing."""

import os
from errno import ENOENT
from pathlib import Path

from tare.errors import InputError
from tare.lab.environments import resolved as with_machines
from tare.lab.result.file_ownership import known_users, require_trusted, resolved, trusted
from tare.lab.result.folder import ResultFolder
from tare.lab.run.continuity import changes
from tare.lab.run.new_manifest import order_entry
from tare.lab.run.progress import Progress
from tare.lab.run.schedule import BlockPart, Together, groups, order_of_runs
from tare.plan import Plan, parse
from tare.samples.manifest import Manifest, read_manifest
from tare.untrusted import PLAN_BYTES, read_bytes


def resumable(plan: Plan | None, folder: Path, blocks: int | None = None) -> Plan:
    """The plan of a result folder, if it is `plan` but for seed, blocks and smoke, with the
    environments that it began with.

    `blocks` is the number that the experiment shall have in the end. Relative paths start where
    they did when the experiment began. Raises InputError where the folder holds no result, or that
    of another plan, or more blocks, or other users could change it: its plan runs commands.
    """
    users = known_users() if plan is None else trusted(plan)
    # Before anything of it is read: the folder that is read must be the folder that was checked.
    require_result(require_trusted(users, resolved(users, folder)), folder)
    file = folder / "plan.toml"
    try:
        text = read_bytes(file, PLAN_BYTES).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{file}: not UTF-8; there is nothing to resume") from error
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{file}: {why}; there is nothing to resume") from error
    start = _start(folder, plan)
    stored = parse(text, str(file), start)
    if plan is not None:
        mine, its = plan.model_dump(), stored.model_dump()
        free = ("blocks", "seed", "smoke")
        if changed := [key for key in mine if key not in free and mine[key] != its[key]]:
            raise InputError(
                f"{folder}: the experiment began with another '{changed[0]}' than this plan's;"
                f" continue with: tare run --resume {folder}"
            )
    if blocks is not None and blocks < stored.blocks:
        raise InputError(
            f"--blocks {blocks}: {folder} is planned for {stored.blocks}; give a larger number"
        )
    if blocks is not None:
        stored = parse(stored.text, str(file), start, {"blocks": blocks})
    begun = read_manifest(folder)
    stored = with_machines(stored, begun.machines)
    kept = {*begun.environments} & {*stored.environment_names}
    return stored.only(kept) if kept else stored


def require_result(is_there: bool, folder: Path) -> None:
    """Raises InputError if there is no result in a folder that was checked."""
    if not is_there:
        why = os.strerror(ENOENT)
        raise InputError(f"{folder / 'plan.toml'}: {why}; there is nothing to resume")


def _start(folder: Path, plan: Plan | None) -> Path:
    """Where relative paths of a result's plan start. Raises InputError where the result does not
    say, or names a folder of a user whose commands are not run."""
    begun_in = read_manifest(folder).plan_folder
    if not begun_in:
        if plan is None:
            raise InputError(
                f"{folder}: was made by an older Tare, which did not store the plan's folder;"
                f" continue with: tare run PLAN --resume {folder}"
            )
        return plan.folder
    start = Path(begun_in)
    try:
        owner = start.stat().st_uid
    except (OSError, ValueError):
        raise InputError(
            f"{folder}: the folder of its plan ({begun_in!r}) cannot be read; restore it, or"
            " start a new experiment"
        ) from None
    if owner not in (known_users() if plan is None else trusted(plan)):
        raise InputError(
            f"{folder}: its plan was in {start}, which belongs to user {owner}; give a plan of your"
            " own, too"
        )
    return start


def check_order(plan: Plan, result: ResultFolder) -> None:
    """Raises InputError where the runs to carry out are not those of the plan."""
    blocks, order = result.manifest.blocks, order_of(result.manifest)
    places = {(block, name) for block in range(1, blocks + 1) for name in plan.groups}
    if (
        not 0 < blocks <= plan.blocks
        or result.manifest.compare != plan.compare
        or len(order) != len(places)
        or {(part.block, part.group) for part in order} != places
        or any({*part.compared} != {*order[0].compared} for part in order)
        or any(len({*part.compared}) != len(part.compared) for part in order)
        or not order[0].compared
        or not {*plan.compared} >= {*order[0].compared}
    ):
        raise InputError(
            f"{result.path}: manifest.json and plan.toml have different orders of runs;"
            " start a new experiment"
        )


def add_blocks(plan: Plan, result: ResultFolder) -> None:
    """Continues the order of runs up to the blocks of `plan`; what is there already stays."""
    manifest = result.manifest
    begun = order_of(manifest)
    # A result from before there was a control goes on without a control.
    compared = [name for name in plan.compared if name in begun[0].compared]
    whole = order_of_runs(manifest.seed, plan.blocks, plan.groups, compared)
    result.replace_plan(plan.text)
    manifest.order += [order_entry(plan, part) for part in whole[len(begun) :]]
    manifest.blocks = plan.blocks
    manifest.finished = None
    result.save()


def missing_runs(plan: Plan, manifest: Manifest) -> list[Together]:
    """What is up together of the runs that are not there or not valid, in order."""
    # What failed is to be mended, and carried out again.
    done = {entry.run for entry in manifest.runs if entry.valid}
    return list(groups(order_of(manifest), plan.has_whole_blocks, done))


def order_of(manifest: Manifest) -> list[BlockPart]:
    """The order of runs as it was written down."""
    if manifest.compare == "environments":
        return [
            BlockPart(part.block, part.condition, (*part.environments,)) for part in manifest.order
        ]
    return [BlockPart(part.block, part.environment, (*part.conditions,)) for part in manifest.order]


def warn_of_changes(result: ResultFolder, fresh: Manifest, progress: Progress) -> None:
    """Notes what is another on this machine than it was. Raises InputError if runs would be of
    another experiment."""
    try:
        found = changes(result.manifest, fresh)
    except InputError as error:
        raise InputError(f"{result.path}: {error}") from error
    for text in found:
        result.manifest.warnings.append(text)
        progress.note(text)
