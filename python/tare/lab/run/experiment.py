# SPDX-License-Identifier: Apache-2.0
"""Carries a plan out, block by block, into a result folder."""

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from tare.errors import TareError
from tare.lab import environments
from tare.lab.environments.fingerprint import fingerprint
from tare.lab.environments.launch import RunError
from tare.lab.machine.concurrent_runs import announced, others
from tare.lab.pipeline.comparison import collected
from tare.lab.pipeline.pipeline import Pipeline, pipeline_of
from tare.lab.processes.processes import Processes, StartError
from tare.lab.recommendations.pods import pods
from tare.lab.result.file_ownership import require_trusted, resolved, trusted
from tare.lab.result.folder import ResultFolder
from tare.lab.run.alternating import AlternatingGroup
from tare.lab.run.block import Group
from tare.lab.run.early_stop import stop_if_failed_early
from tare.lab.run.new_manifest import new_manifest, now
from tare.lab.run.preflight import check
from tare.lab.run.progress import Progress, group_seconds, plan_seconds
from tare.lab.run.resume import (
    add_blocks,
    check_order,
    missing_runs,
    require_result,
    warn_of_changes,
)
from tare.lab.run.schedule import Together, load_seed
from tare.lab.start.laboratory import Laboratory
from tare.lab.start.placement import Placement, out_of_the_way, place
from tare.plan import OwnLoad, Plan
from tare.running import remove_abandoned

CAPACITY_BLOCK = 0


def carry_out(plan: Plan, folder: Path, progress: Progress, resume: bool = False) -> Path:
    """Runs what the plan says, or what is missing of it, and returns the result folder.

    Every finished group of runs is durable before the next group begins. Raises InputError for
    what cannot begin here, TareError where it cannot go on, KeyboardInterrupt after everything
    was stopped.
    """
    skipped: list[str] = []
    if resume:
        plan = environments.resolved(plan)
        environments.check(plan)
    else:
        plan, skipped = environments.available(plan)
    check(plan)
    cpus = sorted(os.sched_getaffinity(0))
    placement = place(plan, cpus)
    fresh = new_manifest(plan, placement)
    fresh.warnings += skipped
    users = trusted(plan)
    folder = resolved(users, folder)
    is_there = require_trusted(users, folder)
    if resume:
        # Another user may have taken it away, to put it back after the check.
        require_result(is_there, folder)
    else:
        with suppress(OSError):  # `create` says why.
            folder.mkdir(parents=True, exist_ok=True)
        # In a folder such as /tmp, another user may have made it meanwhile. Nobody can now.
        require_trusted(users, folder)
    with closing(ResultFolder(folder)) as result:
        if resume:
            result.open()
            warn_of_changes(result, fresh, progress)
            check_order(plan, result)
            if plan.blocks > result.manifest.blocks:
                add_blocks(plan, result)
        else:
            result.create(plan.text, fresh)
        for line in (*skipped, f"placement: {placement.why}"):
            progress.note(line)
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
    for path in remove_abandoned():
        progress.note(f"removed {path.stem}, which a killed tare run left behind")
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
            host=manifest.host,
            tick=progress.within,
            pods=pods(plan),
        )
        _take_fingerprints(lab, progress)
        missing = missing_runs(plan, manifest)
        progress.begin(plan_seconds(plan, missing))
        rate = _rate(lab, progress)
        first = min((together.block for together in missing), default=1)
        with _pipeline(lab, progress) as pipeline:
            for together in missing:
                _warn_of_others(result, progress)
                _carry_out_group(lab, together, rate, first, progress, pipeline=pipeline)
    manifest.finished = now()
    result.save()
    result.clear_work()
    progress.end()
    if log.stat().st_size == 0:
        log.unlink()


def _take_fingerprints(lab: Laboratory, progress: Progress) -> None:
    """Measures each environment of an experiment once, if any is not this host."""
    manifest = lab.folder.manifest
    if all(settings.type == "host" for settings in lab.plan.environments):
        return
    for settings in map(lab.plan.environment, lab.plan.environment_names):
        if settings.name in manifest.fingerprints:
            continue
        progress.note(f"measuring what {settings.name} costs a program")
        try:
            found = fingerprint(settings, lab.processes, lab.folder.work)
        except (RunError, StartError) as error:
            warning = f"{settings.name}: its fingerprint could not be taken: {error}"
            if warning not in manifest.warnings:
                manifest.warnings.append(warning)
        else:
            manifest.fingerprints[settings.name] = found
            lab.folder.save()


def called(name: str, control: str | None) -> str:
    """The name of a condition or environment in messages; the control has none in the plan."""
    return "the control" if name == control else name


@contextmanager
def _pipeline(lab: Laboratory, progress: Progress) -> Iterator[Pipeline | None]:
    """Where spans travel through; None if Tare's receiver is enough. Raises RunError."""
    collect, placement = lab.plan.collect, lab.placement
    if collect is None:
        yield None
        return
    progress.note(f"starting {collect.pipeline}")
    cpus = {*lab.cpus} - {*placement.service, *placement.generator} or {*placement.generator}
    logs = lab.folder.path / "logs" / "pipeline"
    with pipeline_of(collect, lab.plan.folder, lab.processes, sorted(cpus), logs) as found:
        yield found


def _carry_out_group(
    lab: Laboratory,
    together: Together,
    rate: float | None,
    first: int,
    progress: Progress,
    *,
    pipeline: Pipeline | None,
) -> None:
    """Carries out runs that are up together, and makes them durable; `first` is the first block
    that is carried out now."""
    manifest = lab.folder.manifest
    control = manifest.control
    where = lab.plan.where(together.group)
    names = ", ".join(called(name, control) for _, name in together.runs)
    progress.group(f"block {together.block} of {lab.plan.blocks}{where}: {names}")
    kind = AlternatingGroup if lab.plan.design_used == "alternating" else Group
    measured = kind(lab, together.block, together.group, pipeline).measure(
        together.runs, rate, load_seed(manifest.seed, together.block)
    )
    entries = [entry for entry, _ in measured]
    again = {entry.run for entry in entries}
    kept = [entry for entry in manifest.runs if entry.run not in again]
    manifest.runs = sorted(kept + entries, key=lambda entry: entry.run)
    for entry, notes in measured:
        name = called(manifest.compared(entry), control)
        manifest.warnings += [f"run {entry.run} ({name}): {note}" for note in notes]
    # A verdict on the runs so far, as `tare report` writes it, is none on these.
    (lab.folder.path / "verdicts.json").unlink(missing_ok=True)
    lab.folder.save()
    stop_if_failed_early(manifest, again, lab.folder.path, first)
    for entry in entries:
        name = called(manifest.compared(entry), control)
        if entry.collected is not None:
            progress.note(collected(name, entry.collected))
        if not entry.valid:
            progress.note(f"invalid: {name}: {entry.reason}")
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
        group = Group(lab, CAPACITY_BLOCK, lab.plan.groups[0])
        capacity = group.capacity(lab.plan.baseline_name)
        rate = float(load.rate * capacity["rate"])
        stored |= {"capacity": capacity, "rate": rate}
        lab.folder.save()
        progress.note(f"capacity: {capacity['rate']:.0f}/s")
    return float(rate)


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


def _cpu_from(plan: Plan, processes: Processes) -> str:
    return processes.accounting if plan.load.type == "command" else "slices of tare-load"
