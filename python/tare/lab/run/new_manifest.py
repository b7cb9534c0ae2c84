# SPDX-License-Identifier: Apache-2.0
"""The manifest with which an experiment begins."""

import secrets
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version

from tare.lab import recommendations
from tare.lab.run.calibration import service_text
from tare.lab.run.continuity import file_hashes
from tare.lab.run.schedule import BlockPart, order_of_runs
from tare.lab.start.placement import Placement
from tare.plan import OwnLoad, Plan
from tare.plan.schema.environments import GuestEnvironment
from tare.samples.manifest import Condition, DetectionLimit, Facts, Manifest, Part

SMOKE = (
    "this is a smoke run (smoke = true): it only shows that the plan works; its verdicts are not"
    " evidence, and --fail-on ignores them"
)
NO_CONTROL = (
    "the plan has no control (control = false), so this experiment cannot detect that something"
    " disturbed it"
)


def schedule(plan: Plan, seed: int) -> list[BlockPart]:
    """The order of all runs of a plan."""
    return order_of_runs(seed, plan.blocks, plan.groups, plan.compared)


def new_manifest(plan: Plan, placement: Placement) -> Manifest:
    """The manifest of an experiment of which nothing is measured yet."""
    from tare.lab.machine.fingerprint import fingerprint
    from tare.samples.describe.limits import detection_limits

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
        published=plan.published or "",
        design=plan.design_used,
        slice_ns=plan.load.slice if isinstance(plan.load, OwnLoad) else None,
        turns=_turns(plan),
        primary=plan.primary,
        budget=plan.budget,
        alpha=plan.alpha,
        compare=plan.compare,
        baseline=plan.baseline_name,
        control=plan.control_name,
        conditions=[
            Condition(**condition.model_dump(mode="json")) for condition in plan.conditions
        ],
        environments=plan.environment_names,
        machines={
            environment.name: environment.machine
            for environment in plan.environments
            if isinstance(environment, GuestEnvironment) and environment.machine
        },
        plan_folder=str(plan.folder.resolve()),
        seed=seed,
        blocks=plan.blocks,
        smoke=plan.smoke,
        started=now(),
        tare=version("tare"),
        order=[order_entry(plan, part) for part in schedule(plan, seed)],
        placement=asdict(placement),
        load={**load, "capacity": None},
        machine={**machine},
        recommendations=recommendations.of_plan(plan),
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


def order_entry(plan: Plan, part: BlockPart) -> Part:
    """The order of a block as a manifest has it."""
    names = [*part.compared]
    if plan.compare == "environments":
        return Part(block=part.block, condition=part.group, environments=names)
    return Part(block=part.block, environment=part.group, conditions=names)


def now() -> str:
    """The time as a manifest has it."""
    return datetime.now(UTC).isoformat(timespec="seconds")
