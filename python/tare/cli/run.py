# SPDX-License-Identifier: Apache-2.0
"""`tare run`: carries a plan out, judges it, writes the report."""

import sys
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tare.cli.outcome import AsJson, AsMarkdown, FailOn, History, Labels, Outcome
from tare.cli.streams import tell
from tare.errors import InputError, InterruptionError
from tare.terminal import json_text, printable

if TYPE_CHECKING:
    from tare.lab.progress import Progress
    from tare.plan import Plan


def register(app: typer.Typer) -> None:
    """Adds `tare run`."""
    app.command("run")(run)


def run(
    *,
    # Reading the plan says better than Typer what is wrong with its file.
    plan_file: Annotated[
        Path, typer.Argument(metavar="PLAN", readable=False, help="The plan, a TOML file.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="Result folder; results/NAME-TIMESTAMP unless given.")
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(help="Finish this result folder; with --blocks, up to that many in all."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the order of runs and the time it will take.")
    ] = False,
    blocks: Annotated[int | None, typer.Option(min=1, help="Blocks instead of the plan's.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed instead of the plan's.")] = None,
    smoke: Annotated[
        bool,
        typer.Option(
            "--smoke",
            help="Only try the plan out: any number of blocks, and no verdict fails a gate.",
        ),
    ] = False,
    as_json: AsJson = False,
    as_markdown: AsMarkdown = False,
    fail_on: FailOn = None,
    history: History = None,
    labels: Labels = None,
) -> None:
    """Carry a plan out: every block starts every condition fresh, in random order."""
    from tare.plan import load

    if resume is not None and (out is not None or seed is not None or smoke or dry_run):
        others = "--out, --seed, --smoke and --dry-run"
        raise InputError(f"--resume goes on as it was begun; leave out {others}")
    given = {"blocks": None if resume else blocks, "seed": seed, "smoke": smoke or None}
    plan = load(plan_file, {key: value for key, value in given.items() if value is not None})
    if dry_run:
        print_order(plan, as_json)
        return
    outcome = Outcome.wanted(
        as_json=as_json, as_markdown=as_markdown, fail_on=fail_on, history=history, labels=labels
    )
    if resume is not None:
        from tare.lab.experiment import resumable

        plan = resumable(plan, resume, blocks)
    folder = resume or out or Path("results") / f"{plan.name}-{datetime.now():%Y%m%dT%H%M%S}"
    measure(plan, plan_file, folder, resume is not None)
    conclude(folder, outcome)


def measure(plan: "Plan", plan_file: Path, folder: Path, resume: bool) -> None:
    """Carries the plan out; raises InterruptionError, which says how to go on, on Ctrl-C."""
    from tare.lab import carry_out

    with ExitStack() as stack:
        progress: Progress = stack.enter_context(Bar()) if sys.stderr.isatty() else Lines()
        try:
            carry_out(plan, folder, progress, resume)
        except KeyboardInterrupt:
            if not (folder / "manifest.json").exists():
                raise InterruptionError("interrupted before anything was measured") from None
            raise InterruptionError(
                "interrupted; every finished block is kept, go on with:"
                f" tare run {plan_file} --resume {folder}"
            ) from None


def conclude(folder: Path, outcome: Outcome) -> None:
    """Judges what was measured, writes the report, prints the verdicts.

    Raises GateError, after all that, where a verdict is one that was asked to fail.
    """
    from tare.lab.store import count_look
    from tare.report import write
    from tare.report.controls import told
    from tare.report.verdicts import write_verdicts
    from tare.samples import controls
    from tare.samples.manifest import read_manifest
    from tare.samples.measured import read_with_looks
    from tare.verdict import judge

    # Before anything is computed: an interrupted look is one look too many, not one too few.
    count_look(folder)
    measured = read_with_looks(folder)
    judgement = judge(measured[0])
    if unwritten := controls.remember(read_manifest(folder).experiment, judgement.controls):
        judgement = judgement.warned(unwritten)
    write_verdicts(folder, judgement)
    report = write(folder, measured)
    lines = told(judgement.controls, *controls.standing())
    outcome.tell(judgement, after="\n".join(map(printable, [*lines, f"report: {report}"])))
    outcome.gate(judgement)


def print_order(plan: "Plan", as_json: bool) -> None:
    """Prints the order of runs, their time, and the blocks that a verdict takes; starts nothing.

    Raises TareError for a plan that cannot be carried out here.
    """
    import secrets
    from dataclasses import asdict

    from tare.lab.experiment import blocks_for_verdict, called, check, schedule
    from tare.lab.progress import plan_seconds
    from tare.lab.schedule import groups

    check(plan)
    seed = secrets.randbelow(2**31) if plan.seed is None else plan.seed
    order = schedule(plan, seed)
    seconds = plan_seconds(plan, groups(order, plan.design_used == "interleaved"))
    if as_json:
        answer = {
            "design": plan.design_used,
            "seed": seed,
            "control": plan.control_name,
            "order": [asdict(part) for part in order],
            "seconds": seconds,
            "blocks": plan.blocks,
            "blocks_for_verdict": blocks_for_verdict(plan),
            "smoke": plan.smoke,
        }
        print(json_text(answer, indent=None))
        return
    together = "side by side" if plan.design_used == "interleaved" else "one after the other"
    drawn = "" if plan.seed is not None else " (drawn now: another order next time)"
    name = printable(plan.name)
    print(f"{name}: {plan.design_used}, conditions {together}, seed {seed}{drawn}")
    for part in order:
        where = f" in {part.environment}" if len(plan.environments) > 1 else ""
        names = ", ".join(called(name, plan.control_name) for name in part.conditions)
        print(printable(f"block {part.block}{where}: {names}"))
    if plan.control:
        baseline = printable(plan.baseline_name)
        print(f"the control: {baseline} once more in every block, to be no different")
    least = f"a verdict takes at least {blocks_for_verdict(plan)} blocks"
    verdicts = ", a smoke run: its verdicts are no evidence" if plan.smoke else ""
    print(f"{least}; this plan has {plan.blocks}{verdicts}")
    print(f"about {duration(seconds)}")


def duration(seconds: float) -> str:
    """Minutes and seconds for a person."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


class Lines:
    """Progress for a file or a pipe: one plain line a step."""

    def begin(self, total_s: float) -> None:
        self.note(f"about {duration(total_s)}")

    def group(self, text: str) -> None:
        self.note(text)

    def within(self, elapsed_s: float) -> None:
        """A line a step is enough."""

    def group_done(self, estimated_s: float) -> None:
        """The next step says so."""

    def note(self, text: str) -> None:
        tell(text)

    def end(self) -> None:
        """Nothing to close."""


class Bar:
    """Progress for a terminal."""

    def __enter__(self) -> "Bar":
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self.bar.start()
        self.task = self.bar.add_task("starting", total=None)
        self.done_s = 0.0
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def begin(self, total_s: float) -> None:
        self.bar.update(self.task, total=total_s)

    def group(self, text: str) -> None:
        self.bar.update(self.task, description=text)

    def within(self, elapsed_s: float) -> None:
        self.bar.update(self.task, completed=self.done_s + elapsed_s)

    def group_done(self, estimated_s: float) -> None:
        self.done_s += estimated_s
        self.bar.update(self.task, completed=self.done_s)

    def note(self, text: str) -> None:
        self.bar.console.print(printable(text, "\n"), markup=False, highlight=False)

    def end(self) -> None:
        self.bar.update(self.task, description="done")
