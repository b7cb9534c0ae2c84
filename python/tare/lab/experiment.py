# SPDX-License-Identifier: Apache-2.0
"""Carries a plan out, block by block, into a result folder."""

import os
import secrets
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import asdict
from datetime import UTC, datetime
from errno import ENOENT
from importlib.metadata import version
from pathlib import Path

from tare.errors import InputError, TareError
from tare.lab import commands, environments, layers
from tare.lab.alternating import AlternatingGroup
from tare.lab.block import Group, Laboratory
from tare.lab.calibration import service_text
from tare.lab.continuity import changes, file_hashes
from tare.lab.early_stop import stop_if_failed_early
from tare.lab.neighbours import announced, others
from tare.lab.placement import Placement, out_of_the_way, place
from tare.lab.processes import Processes
from tare.lab.progress import Progress, group_seconds, plan_seconds
from tare.lab.schedule import BlockPart, Together, groups, load_seed, order_of_runs
from tare.lab.store import ResultFolder
from tare.lab.tare_load import require_own_generator
from tare.lab.trust import known_users, require_trusted, resolved, trusted
from tare.plan import OwnLoad, Plan, expected, parse, refused
from tare.plan.alternation import of_service
from tare.samples.manifest import (
    Condition,
    DetectionLimit,
    Facts,
    Manifest,
    Part,
    read_manifest,
)
from tare.untrusted import PLAN_BYTES, read_bytes

CAPACITY_BLOCK = 0
SMOKE = (
    "this is a smoke run (smoke = true): it only shows that the plan works; its verdicts are not"
    " evidence, and --fail-on ignores them"
)
NO_CONTROL = (
    "the plan has no control (control = false), so this experiment cannot detect that something"
    " disturbed it"
)


def carry_out(plan: Plan, folder: Path, progress: Progress, resume: bool = False) -> Path:
    """Runs what the plan says, or what is missing of it, and returns the result folder.

    Every finished group of runs is durable before the next one begins. Raises InputError for
    what cannot begin here, TareError where it cannot go on, KeyboardInterrupt after everything
    was stopped.
    """
    check(plan)
    cpus = sorted(os.sched_getaffinity(0))
    placement = place(plan, cpus)
    fresh = _manifest(plan, placement)
    users = trusted(plan)
    folder = resolved(users, folder)
    is_there = require_trusted(users, folder)
    if resume:
        # Another user may have taken it away, to put it back after the check.
        _require(is_there, folder)
    else:
        with suppress(OSError):  # `create` says why.
            folder.mkdir(parents=True, exist_ok=True)
        # In a folder such as /tmp, another user may have made it meanwhile. Nobody can now.
        require_trusted(users, folder)
    with closing(ResultFolder(folder)) as result:
        if resume:
            result.open()
            _warn_of_changes(result, fresh, progress)
            _check_order(plan, result)
            if plan.blocks > result.manifest.blocks:
                _add_blocks(plan, result)
        else:
            result.create(plan.text, fresh)
        progress.note(f"placement: {placement.why}")
        if plan.control:
            progress.note(f"control: {plan.baseline_name} runs twice in each block, and must agree")
        try:
            with out_of_the_way(placement):
                _carry_out(plan, placement, cpus, result, progress)
        except OSError as error:
            raise TareError(
                f"{error.filename or result.path}: {error.strerror or error};"
                f" finished blocks are kept; continue with --resume {result.path}"
            ) from error
    return result.path


def _carry_out(
    plan: Plan, placement: Placement, cpus: list[int], result: ResultFolder, progress: Progress
) -> None:
    manifest = result.manifest
    result.clear_work()
    result.work.mkdir()
    log = result.path / "supervisor.log"
    with announced(), Processes(log) as processes:
        manifest.cpu_from = _cpu_from(plan, processes)
        lab = Laboratory(
            plan=plan,
            folder=result,
            processes=processes,
            placement=placement,
            cpus=cpus,
            experiment=manifest.experiment,
            host=str(manifest.machine.get("machine", "")),
            tick=progress.within,
        )
        missing = _missing(plan, manifest)
        progress.begin(plan_seconds(plan, missing))
        rate = _rate(lab, progress)
        first = min((together.block for together in missing), default=1)
        for together in missing:
            _warn_of_others(result, progress)
            _carry_out_group(lab, together, rate, first, progress)
    manifest.finished = _now()
    result.save()
    result.clear_work()
    progress.end()
    if log.stat().st_size == 0:
        log.unlink()


def check(plan: Plan) -> None:
    """Raises InputError or TareError for what can be known before anything is started."""
    least = blocks_for_verdict(plan)
    if plan.blocks < least and not plan.smoke:
        wanted = f"at least {least}: fewer blocks cannot reach a verdict at alpha {plan.alpha:g}"
        remedy = "add blocks, or set smoke = true (--smoke) to only try the plan out"
        raise refused(plan, ("blocks",), expected(f"{wanted}; {remedy}"))
    environments.check(plan)
    layers.check(plan)
    commands.check(plan)
    if isinstance(plan.load, OwnLoad):
        require_own_generator()
        for key, name in plan.load.files.items():
            if not (file := plan.folder / name).is_file():
                raise refused(plan, ("load", key), expected(f"a file: {file} does not exist"))
    else:
        from tare.samples import FORMATS, ROLES, Asked

        if plan.load.format not in FORMATS:
            raise refused(plan, ("load", "format"), expected(f"one of {', '.join(FORMATS)}"))
        try:
            Asked(plan.load.columns, plan.load.unit)
        except InputError as error:
            wanted = f"duration, or start and end, of {', '.join(ROLES)}"
            raise refused(plan, ("load", "columns"), expected(wanted)) from error


def blocks_for_verdict(plan: Plan) -> int:
    """The fewest blocks with which the plan can reach any verdict."""
    from tare.stats.fewest_runs import fewest_runs

    return fewest_runs(plan.alpha, paired=True)


def resumable(plan: Plan | None, folder: Path, blocks: int | None = None) -> Plan:
    """The plan of a result folder, if it is `plan` but for seed, blocks and smoke.

    `blocks` is the number that the experiment shall have in the end. Relative paths start where
    they did when the experiment began. Raises InputError where the folder holds no result, or that
    of another plan, or more blocks, or other users could change it: its plan runs commands.
    """
    users = known_users() if plan is None else trusted(plan)
    # Before anything of it is read: the folder that is read must be the one that was checked.
    _require(require_trusted(users, resolved(users, folder)), folder)
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
                f"{folder}: began with another {changed[0]}; resume with the same plan"
            )
    if blocks is None:
        return stored
    if blocks < stored.blocks:
        raise InputError(
            f"--blocks {blocks}: {folder} is planned for {stored.blocks}; give a larger number"
        )
    return parse(stored.text, str(file), start, {"blocks": blocks})


def _require(is_there: bool, folder: Path) -> None:
    if not is_there:
        why = os.strerror(ENOENT)
        raise InputError(f"{folder / 'plan.toml'}: {why}; there is nothing to resume")


def _start(folder: Path, plan: Plan | None) -> Path:
    """Where relative paths of a result's plan start. Raises InputError where the result does not
    say, or names a folder of a user whose commands are not run."""
    begun_in = read_manifest(folder).plan_folder
    if not begun_in:
        if plan is None:
            raise InputError(f"{folder}: an older Tare made it; give the plan, too")
        return plan.folder
    start = Path(begun_in)
    try:
        owner = start.stat().st_uid
    except (OSError, ValueError):
        raise InputError(
            f"{folder}: began in a folder that cannot be read ({begun_in!r}); restore it, or"
            " start a new experiment"
        ) from None
    if owner not in (known_users() if plan is None else trusted(plan)):
        raise InputError(
            f"{folder}: began in {start}, which belongs to user {owner}; give a plan of your own"
        )
    return start


def schedule(plan: Plan, seed: int) -> list[BlockPart]:
    """The order of all runs of a plan."""
    return order_of_runs(seed, plan.blocks, plan.environment_names, list(plan.measured))


def called(name: str, control: str | None) -> str:
    """What a person is told of a condition: the control is none that anybody declared."""
    return "the control" if name == control else name


def _carry_out_group(
    lab: Laboratory, together: Together, rate: float | None, first: int, progress: Progress
) -> None:
    """Carries out runs that are up together, and makes them durable; `first` is the first block
    that is carried out now."""
    manifest = lab.folder.manifest
    control = manifest.control
    where = f" in {together.environment}" if len(lab.plan.environments) > 1 else ""
    names = ", ".join(called(name, control) for _, name in together.runs)
    progress.group(f"block {together.block} of {lab.plan.blocks}{where}: {names}")
    kind = AlternatingGroup if lab.plan.design_used == "alternating" else Group
    measured = kind(lab, together.block, together.environment).measure(
        [(number, lab.plan.measured[name]) for number, name in together.runs],
        rate,
        load_seed(manifest.seed, together.block),
    )
    entries = [entry for entry, _ in measured]
    again = {entry.run for entry in entries}
    kept = [entry for entry in manifest.runs if entry.run not in again]
    manifest.runs = sorted(kept + entries, key=lambda entry: entry.run)
    for entry, oddities in measured:
        name = called(entry.condition, control)
        manifest.warnings += [f"run {entry.run} ({name}): {oddity}" for oddity in oddities]
    # A verdict on the runs so far, as `tare report` writes one, is none on these.
    (lab.folder.path / "verdicts.json").unlink(missing_ok=True)
    lab.folder.save()
    stop_if_failed_early(manifest, again, lab.folder.path, first)
    for entry in entries:
        if not entry.valid:
            progress.note(f"invalid: {called(entry.condition, control)}: {entry.reason}")
    progress.group_done(group_seconds(lab.plan, len(entries)))


def _rate(lab: Laboratory, progress: Progress) -> float | None:
    """Requests a second, with the baseline's capacity measured first where the plan needs it."""
    load = lab.plan.load
    if not isinstance(load, OwnLoad):
        return None
    if not load.needs_capacity:
        return load.rate if load.rate is None else float(load.rate)
    stored = lab.folder.manifest.load
    rate = stored.get("rate")
    if stored.get("capacity") is None or not isinstance(rate, int | float):
        progress.note("measuring the capacity of the baseline")
        baseline = lab.plan.measured[lab.plan.baseline_name]
        group = Group(lab, CAPACITY_BLOCK, lab.plan.environments[0].name)
        without = baseline.model_copy(update={"layers": of_service(baseline)})
        capacity = group.capacity(without)
        rate = float(load.rate * capacity["rate"])
        stored |= {"capacity": capacity, "rate": rate}
        lab.folder.save()
        progress.note(f"capacity: {capacity['rate']:.0f}/s")
    return float(rate)


def _manifest(plan: Plan, placement: Placement) -> Manifest:
    from tare.lab.machine import fingerprint
    from tare.samples.limits import detection_limits

    machine = fingerprint()
    limits, damage = detection_limits(str(machine.get("machine", "")), service_text(plan))
    seed = secrets.randbelow(2**31) if plan.seed is None else plan.seed
    stamp = datetime.now().strftime("%Y%m%dT%H%M%S")
    load = plan.load.model_dump(mode="json")
    if isinstance(plan.load, OwnLoad) and plan.load.needs_capacity:
        load["rate"] = None
        load["share_of_capacity"] = float(plan.load.rate)
    return Manifest(
        experiment=f"{plan.name}-{stamp}-{secrets.token_hex(2)}",
        name=plan.name,
        kind=plan.kind,
        design=plan.design_used,
        slice_ns=plan.load.slice if isinstance(plan.load, OwnLoad) else None,
        turns=_turns(plan),
        primary=plan.primary,
        budget=plan.budget,
        alpha=plan.alpha,
        baseline=plan.baseline_name,
        control=plan.control_name,
        conditions=[Condition(**one.model_dump(mode="json")) for one in plan.conditions],
        environments=plan.environment_names,
        plan_folder=str(plan.folder.resolve()),
        seed=seed,
        blocks=plan.blocks,
        smoke=plan.smoke,
        started=_now(),
        tare=version("tare"),
        order=[_part(one) for one in schedule(plan, seed)],
        placement=asdict(placement),
        load={**load, "capacity": None},
        machine={**machine},
        limits=[DetectionLimit(**asdict(limit)) for limit in limits],
        files=file_hashes(plan),
        warnings=[
            *([] if plan.control else [NO_CONTROL]),
            *([SMOKE] if plan.smoke else []),
            *damage,
        ],
        runs=[],
    )


def _turns(plan: Plan) -> Facts:
    if plan.design_used != "alternating":
        return {}
    return {"of_condition": plan.turns, "turn_ns": plan.turn, "settle_ns": plan.settle}


def _part(one: BlockPart) -> Part:
    return Part(block=one.block, environment=one.environment, conditions=[*one.conditions])


def _check_order(plan: Plan, result: ResultFolder) -> None:
    """Raises InputError where the runs to carry out are not those of the plan."""
    blocks, order = result.manifest.blocks, result.manifest.order
    places = {(block, name) for block in range(1, blocks + 1) for name in plan.environment_names}
    known = plan.measured.keys()
    if (
        not 0 < blocks <= plan.blocks
        or len(order) != len(places)
        or {(part.block, part.environment) for part in order} != places
        or any({*part.conditions} != {*order[0].conditions} for part in order)
        or any(len({*part.conditions}) != len(part.conditions) for part in order)
        or not order[0].conditions
        or not known >= {*order[0].conditions}
    ):
        raise InputError(
            f"{result.path}: manifest.json and plan.toml have different orders of runs;"
            " start a new experiment"
        )


def _add_blocks(plan: Plan, result: ResultFolder) -> None:
    """Continues the order of runs up to the blocks of `plan`; what is there already stays."""
    manifest = result.manifest
    begun = manifest.order
    # A result from before there was a control goes on without one.
    conditions = [name for name in plan.measured if name in begun[0].conditions]
    whole = order_of_runs(manifest.seed, plan.blocks, plan.environment_names, conditions)
    result.replace_plan(plan.text)
    manifest.order = [*begun, *map(_part, whole[len(begun) :])]
    manifest.blocks = plan.blocks
    manifest.finished = None
    result.save()


def _missing(plan: Plan, manifest: Manifest) -> list[Together]:
    order = [
        BlockPart(part.block, part.environment, tuple(part.conditions)) for part in manifest.order
    ]
    # What failed is to be mended, and carried out again.
    done = {entry.run for entry in manifest.runs if entry.valid}
    return list(groups(order, plan.has_whole_blocks, done))


def _warn_of_others(result: ResultFolder, progress: Progress) -> None:
    running = others()
    if not running:
        return
    text = "another tare run ran on this machine at the same time: both disturbed each other"
    if text not in result.manifest.warnings:
        result.manifest.warnings.append(text)
        pids: Sequence[str] = [str(pid) for pid in running]
        progress.note(
            f"another tare run is running (process {', '.join(pids)}): both disturb each other"
        )


def _warn_of_changes(result: ResultFolder, fresh: Manifest, progress: Progress) -> None:
    try:
        found = changes(result.manifest, fresh)
    except InputError as error:
        raise InputError(f"{result.path}: {error}") from error
    for text in found:
        result.manifest.warnings.append(text)
        progress.note(text)


def _cpu_from(plan: Plan, processes: Processes) -> str:
    return processes.accounting if plan.load.type == "command" else "slices of tare-load"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
