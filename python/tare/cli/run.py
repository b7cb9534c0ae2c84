# SPDX-License-Identifier: Apache-2.0
"""`tare run`: carries a plan out, judges it, writes the report."""

import shlex
import sys
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tare.cli.shared.experiment import ExperimentOptions, read_plan
from tare.cli.shared.options import given_options, number, option, with_groups
from tare.cli.shared.outcome import Outcome, OutcomeOptions
from tare.cli.shared.progress import Bar, Lines, duration
from tare.cli.shared.streams import tell
from tare.errors import InputError, InterruptionError
from tare.terminal import json_text, printable

if TYPE_CHECKING:
    from tare.lab.run.progress import Progress
    from tare.plan import Plan

_TOGETHER = {
    "interleaved": "side by side",
    "blocks": "one after the other",
    "alternating": "in turns on one service",
}


def register(app: typer.Typer) -> None:
    """Adds `tare run`."""
    app.command("run")(with_groups(run))


def run(
    *,
    # Reading the plan says better than Typer what is wrong with its file.
    plan_file: Annotated[
        Path | None,
        typer.Argument(
            metavar="PLAN", readable=False, help="A plan, a TOML file.", show_default=False
        ),
    ] = None,
    experiment: ExperimentOptions,
    print_plan: Annotated[
        bool,
        typer.Option("--print-plan", help="Print the plan that the options mean, and stop."),
    ] = False,
    schema: Annotated[
        bool,
        typer.Option("--schema", help="Print the JSON Schema of plans, and stop."),
    ] = False,
    out: Annotated[
        Path | None,
        option("--out", "FOLDER", "Result folder. Default: results/NAME-TIMESTAMP."),
    ] = None,
    resume: Annotated[
        Path | None,
        option(
            "--resume",
            "FOLDER",
            "Finish this result folder, without PLAN; --blocks N adds blocks up to N in total.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the order of runs and the time they take.")
    ] = False,
    blocks: Annotated[
        int | None, number("--blocks", "Number of blocks, instead of the plan's. Default: 8.")
    ] = None,
    seed: Annotated[
        int | None, number("--seed", "Seed, instead of the plan's. Default: random.", 0)
    ] = None,
    isolate: Annotated[
        str | None,
        option(
            "--isolate",
            "SERVICE",
            "Measure only this service of [[services]], with what it needs, at the rate of"
            " the plan.",
        ),
    ] = None,
    smoke: Annotated[
        bool,
        typer.Option(
            "--smoke",
            help="Only try the plan out: any number of blocks; --fail-on ignores its verdicts.",
        ),
    ] = False,
    wanted: OutcomeOptions,
) -> None:
    """Measure what layers cost a service, with a verdict for each.

    Takes a plan, or a service with its conditions:

    \b
      tare run --service 'my-server --port {port}' --condition agent=env:NAME=VALUE

    Every block starts every condition fresh, in random order. The first condition without a
    layer is the baseline ("plain", added if all have layers).

    \b
    LAYER is one of
      hook[:RULES_FILE]          Tare's library-level hook
      link[:eager]               Tare's shared memory between service and load
      log[:CODEC]                Tare's event log
      spans[:AGENT_JAR]          spans that the service exports over OTLP
      proxy:envoy|haproxy|nginx  a proxy in front of the service
      wrap:COMMAND               a command before the service's own
      env:VARIABLE=VALUE         a variable of the service's environment
      agent:COMMAND              a program that observes the whole machine
      map[:INTERVAL]             Tare's tracer of sockets, for the whole machine
    """
    if schema:
        from tare.plan.text.json_schema import plan_schema

        print(json_text(plan_schema()))
        return
    settings = given_options(
        {
            "--out": out is not None,
            "--seed": seed is not None,
            "--isolate": isolate is not None,
            "--smoke": smoke,
            "--dry-run": dry_run,
        }
    )
    if resume is not None and settings:
        raise InputError(f"--resume: keeps the settings of the experiment; remove {settings}")
    if resume is not None and plan_file is None and not experiment.words() and not print_plan:
        outcome = Outcome.wanted(wanted)
        go_on(None, resume, blocks, outcome)
        return
    given = {"blocks": None if resume else blocks, "seed": seed, "smoke": smoke or None}
    plan = read_plan(
        plan_file,
        {key: value for key, value in given.items() if value is not None},
        experiment,
    )
    if isolate is not None:
        from tare.plan import isolated, left_out

        whole, plan = plan, isolated(plan, isolate)
        for line in left_out(whole, isolate):
            tell(f"warning: {line}")
    if print_plan:
        print(printable(plan.text, "\n\t") if sys.stdout.isatty() else plan.text, end="")
        return
    if dry_run:
        print_order(plan, wanted.as_json)
        return
    outcome = Outcome.wanted(wanted)
    if resume is not None:
        go_on(plan, resume, blocks, outcome)
        return
    folder = out or Path("results") / f"{plan.name}-{datetime.now():%Y%m%dT%H%M%S}"
    measure(plan, folder, resume=False)
    conclude(folder, outcome)


def go_on(plan: "Plan | None", folder: Path, blocks: int | None, outcome: Outcome) -> None:
    """Finishes a result folder; `plan` is the plan that it began with, or None."""
    from tare.lab.run.resume import resumable

    measure(resumable(plan, folder, blocks), folder, resume=True)
    conclude(folder, outcome)


def measure(plan: "Plan", folder: Path, resume: bool) -> None:
    """Carries the plan out. Raises InterruptionError on Ctrl-C, with the command that goes on."""
    from tare.lab import carry_out

    with ExitStack() as stack:
        progress: Progress = stack.enter_context(Bar()) if sys.stderr.isatty() else Lines()
        try:
            carry_out(plan, folder, progress, resume)
        except KeyboardInterrupt:
            if not (folder / "manifest.json").exists():
                raise InterruptionError("interrupted before anything was measured") from None
            raise InterruptionError(
                "interrupted; finished blocks are kept. Continue with:"
                f" tare run --resume {shlex.quote(str(folder))}"
            ) from None


def conclude(folder: Path, outcome: Outcome) -> None:
    """Judges what was measured, writes the report, prints the verdicts.

    Raises GateError, after all that, where a verdict is among those that were asked to fail.
    """
    from tare.lab.result.folder import count_look
    from tare.report import write
    from tare.report.result.verdicts import write_verdicts
    from tare.report.sections import environments, recommendations
    from tare.report.sections.controls import told
    from tare.samples.describe import controls
    from tare.samples.manifest import read_manifest
    from tare.samples.read.result_folders import read_with_looks
    from tare.verdict import judge

    # Before anything is computed: an interrupted look is one look too many, not one too few.
    count_look(folder)
    measured = read_with_looks(folder)
    judgement = judge(measured[0])
    if unwritten := controls.remember(read_manifest(folder).experiment, judgement.controls):
        judgement = judgement.warned(unwritten)
    write_verdicts(folder, judgement)
    report = write(folder, measured)
    # Most recommendations are broken by so short a run, and it shows nothing that they could limit.
    answers = [] if judgement.smoke else recommendations.short(recommendations.stored(folder))
    lines = [
        *environments.short(read_manifest(folder)),
        *told(judgement.controls, *controls.standing()),
        *answers,
    ]
    outcome.tell(judgement, after="\n".join(map(printable, [*lines, f"report: {report}"])))
    outcome.gate(judgement)


def print_order(plan: "Plan", as_json: bool) -> None:
    """Prints the order of runs, their time, and the blocks that a verdict takes; starts nothing.

    Raises TareError for a plan that cannot be carried out here.
    """
    import secrets

    from tare.lab.environments import available
    from tare.lab.run.experiment import called
    from tare.lab.run.new_manifest import order_entry, schedule
    from tare.lab.run.preflight import blocks_for_verdict, check
    from tare.lab.run.progress import plan_seconds
    from tare.lab.run.schedule import groups

    plan, skipped = available(plan)
    check(plan)
    seed = secrets.randbelow(2**31) if plan.seed is None else plan.seed
    order = schedule(plan, seed)
    seconds = plan_seconds(plan, groups(order, plan.has_whole_blocks))
    if as_json:
        answer = {
            "design": plan.design_used,
            "compare": plan.compare,
            "skipped": skipped,
            "seed": seed,
            "control": plan.control_name,
            "order": [order_entry(plan, part).model_dump() for part in order],
            "seconds": seconds,
            "blocks": plan.blocks,
            "blocks_for_verdict": blocks_for_verdict(plan),
            "smoke": plan.smoke,
        }
        print(json_text(answer, indent=None))
        return
    for line in skipped:
        print(printable(line))
    together = _TOGETHER[plan.design_used]
    drawn = "" if plan.seed is not None else " (random: another order next time)"
    name = printable(plan.name)
    print(f"{name}: {plan.design_used}, {plan.compare} {together}, seed {seed}{drawn}")
    for part in order:
        names = ", ".join(called(name, plan.control_name) for name in part.compared)
        print(printable(f"block {part.block}{plan.where(part.group)}: {names}"))
    if plan.control:
        baseline = printable(plan.baseline_name)
        print(
            f"control: {baseline} runs a second time in every block and must not differ from itself"
        )
    least = f"a verdict needs at least {blocks_for_verdict(plan)} blocks"
    verdicts = "; a smoke run: its verdicts are not evidence" if plan.smoke else ""
    print(f"{least}; this plan has {plan.blocks}{verdicts}")
    print(f"about {duration(seconds)}")
