# SPDX-License-Identifier: Apache-2.0
"""What can be known of a plan before anything is started."""

from tare.errors import InputError
from tare.lab import layers
from tare.lab.load.tare_load import require_own_generator
from tare.lab.pipeline import programs
from tare.lab.recommendations.pods import pods
from tare.lab.start import commands, placement
from tare.plan import OwnLoad, Plan, expected, refused


def check(plan: Plan) -> None:
    """Raises InputError or TareError for what can be known before anything is started."""
    least = blocks_for_verdict(plan)
    if plan.blocks < least and not plan.smoke:
        wanted = f"at least {least}: fewer blocks cannot reach a verdict at alpha {plan.alpha:g}"
        remedy = "add blocks, or set smoke = true (--smoke) to only try the plan out"
        raise refused(plan, ("blocks",), expected(f"{wanted}; {remedy}"))
    placement.check(plan)
    layers.check(plan)
    pods(plan)
    commands.check(plan)
    programs.check(plan)
    if isinstance(plan.load, OwnLoad):
        require_own_generator()
        for key, name in plan.load.files.items():
            if not (file := plan.folder / name).is_file():
                raise refused(plan, ("load", key), expected(f"a file: {file} does not exist"))
    else:
        from tare.samples import FORMATS, ROLES, ImportOptions

        if plan.load.format not in FORMATS:
            raise refused(plan, ("load", "format"), expected(f"one of {', '.join(FORMATS)}"))
        try:
            ImportOptions(plan.load.columns, plan.load.unit)
        except InputError as error:
            wanted = f"duration, or start and end, of {', '.join(ROLES)}"
            raise refused(plan, ("load", "columns"), expected(wanted)) from error


def blocks_for_verdict(plan: Plan) -> int:
    """The fewest blocks with which the plan can reach any verdict."""
    from tare.stats.fewest_runs import fewest_runs

    return fewest_runs(plan.alpha, paired=True)
