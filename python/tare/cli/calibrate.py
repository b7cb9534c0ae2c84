# SPDX-License-Identifier: Apache-2.0
"""`tare calibrate`: the smallest delay that is detected here, measured with known delays."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tare.atomic_files import replace
from tare.cli.shared.options import AsJson, number, option
from tare.cli.shared.progress import Bar, Lines, duration
from tare.cli.shared.streams import tell
from tare.errors import InputError, InterruptionError
from tare.extras import require_extra
from tare.terminal import json_text, printable

if TYPE_CHECKING:
    from tare.calibration.detection import Calibration
    from tare.lab.run.calibration import Calibrated, Extent
    from tare.lab.run.progress import Progress
    from tare.plan import Plan


def register(app: typer.Typer) -> None:
    """Adds `tare calibrate`."""
    app.command("calibrate")(calibrate)


def calibrate(
    *,
    plan_file: Annotated[
        Path,
        typer.Argument(
            metavar="PLAN", readable=False, help="A plan with a table [calibration], a TOML file."
        ),
    ],
    delays: Annotated[
        str | None, option("--delays", "0,50us,...", "Added delays, instead of the plan's.")
    ] = None,
    repetitions: Annotated[
        int | None, number("--repetitions", "Number of repetitions, instead of the plan's.")
    ] = None,
    blocks: Annotated[
        int | None, number("--blocks", "Blocks per repetition, instead of the plan's.")
    ] = None,
    out: Annotated[
        Path | None,
        option("--out", "FOLDER", "Result folder. Default: results/NAME-calibration-TIMESTAMP."),
    ] = None,
    resume: Annotated[
        Path | None,
        option(
            "--resume",
            "FOLDER",
            "Finish the calibration in this folder, with the settings it began with.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure the smallest delay that Tare detects on this machine.

    The service adds known delays to its requests. For each statistic the result is the smallest
    delay that is detected. Later verdicts on this service use these limits.
    """
    from tare.calibration.repetitions import check_blocks
    from tare.lab import environments
    from tare.lab.result.file_ownership import require_trusted, resolved, trusted
    from tare.lab.run.calibration import calibrations
    from tare.lab.run.preflight import check
    from tare.plan import load

    if out is not None and resume is not None:
        raise InputError("--out and --resume: choose one of them")
    plan = load(plan_file)
    asked = {
        "delays": None if delays is None else _delays(delays),
        "repetitions": repetitions,
        "blocks": blocks,
    }
    extent = _extent(
        plan, {name: value for name, value in asked.items() if value is not None}, resume
    )
    check_blocks(extent.blocks, plan.alpha)
    parts = calibrations(plan, extent)
    name = f"{plan.name}-calibration-{datetime.now():%Y%m%dT%H%M%S}"
    folder = resume or out or Path("results") / name
    for part in parts:
        environments.check(part.plan)
        check(part.plan)
    users = trusted(plan)
    require_trusted(users, resolved(users, folder))
    # Before hours are spent, not after.
    require_extra("scipy", "scipy.stats", "tare calibrate")
    if resume is None:
        with suppress(OSError):  # `begin` says why.
            folder.mkdir(parents=True, exist_ok=True)
        # In a folder such as /tmp, another user may have made it meanwhile. Nobody can now.
        require_trusted(users, resolved(users, folder))
        extent.begin(folder)
    measure(parts, folder, resume is not None)
    found = judged(plan, parts, folder, extent.blocks)
    conclude(found, folder, as_json)


def _extent(plan: Plan, asked: Mapping[str, Any], resume: Path | None) -> Extent:
    """What was asked for, and else what the plan says; of a folder, as it was begun."""
    from tare.lab.run.calibration import Extent, offered

    offer = offered(plan)
    if resume is None:
        own = {"delays": offer.delays, "repetitions": offer.repetitions, "blocks": plan.blocks}
        return Extent(**{**own, **asked})
    begun = Extent.begun(resume)
    for name, value in asked.items():
        if value != getattr(begun, name):
            raise InputError(f"{resume}: began with other {name}; remove --{name}")
    return begun


def measure(parts: Sequence[Calibrated], folder: Path, resume: bool) -> None:
    """Carries out the experiment of each request, in a folder of its own.

    Raises TareError where a condition of an experiment fails from its start.
    """
    from tare.lab import carry_out
    from tare.lab.run.resume import resumable

    if len(parts) > 1 and not resume:
        tell(f"{len(parts)} requests, about {duration(_seconds(parts))} in all")
    for part in parts:
        here = folder / part.name
        begun = resume and here.exists()
        plan = resumable(part.plan, here) if begun else part.plan
        with ExitStack() as stack:
            progress: Progress = stack.enter_context(Bar()) if sys.stderr.isatty() else Lines()
            if len(parts) > 1:
                progress.note(f"request '{part.name}'")
            try:
                carry_out(plan, here, progress, begun)
            except KeyboardInterrupt:
                if not any(folder.glob("*/manifest.json")):
                    raise InterruptionError("interrupted before anything was measured") from None
                raise InterruptionError(
                    "interrupted; finished blocks are kept. Continue with the same command and"
                    f" --resume {folder}"
                ) from None


def judged(plan: Plan, parts: Sequence[Calibrated], folder: Path, blocks: int) -> Calibration:
    """What each statistic detects. Raises TareError where the service ignores the delay."""
    from tare import __version__
    from tare.calibration.detection import Calibration
    from tare.calibration.repetitions import detect
    from tare.samples.manifest import read_manifest
    from tare.samples.read.latencies import latencies

    manifests = {part.name: read_manifest(folder / part.name) for part in parts}
    first = manifests[parts[0].name]
    return Calibration(
        name=plan.name,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        machine=first.host,
        version=__version__,
        blocks=blocks,
        repetitions=first.blocks // blocks,
        services={part.name: part.service for part in parts},
        detections={
            part.name: detect(
                latencies(folder / part.name),
                part.steps,
                part.plan.baseline_name,
                blocks,
                plan.alpha,
            )
            for part in parts
        },
    )


def conclude(found: Calibration, folder: Path, as_json: bool) -> None:
    """Writes report and numbers, prints them, remembers the limits."""
    from tare.report.page.calibration import write
    from tare.samples.describe.limits import remember

    text = json_text(found.to_json())
    replace(folder / "calibration.json", text + "\n")
    report = write(found, folder)
    typer.echo(text if as_json else f"{_table(found)}report: {printable(str(report))}")
    kept = remember(found.limits)
    if not as_json:
        typer.echo(f"stored for later verdicts: {printable(str(kept))}")


def _delays(text: str) -> list[int]:
    from pydantic_core import PydanticCustomError

    from tare.plan.schema.calibration import whole_microseconds_ns

    found = {0}
    for word in text.split(","):
        try:
            found.add(whole_microseconds_ns(word.strip()))
        except PydanticCustomError as error:
            raise InputError(
                f"--delays: found '{word.strip()}', expected {error.message()}, as in 0,50us,1ms"
            ) from error
    if found == {0}:
        raise InputError("--delays: found no delay above zero; give some, such as 0,50us,1ms")
    return sorted(found)


def _seconds(parts: Sequence[Calibrated]) -> float:
    from tare.lab.run.new_manifest import schedule
    from tare.lab.run.progress import plan_seconds
    from tare.lab.run.schedule import groups

    return sum(
        plan_seconds(part.plan, groups(schedule(part.plan, 0), part.plan.has_whole_blocks))
        for part in parts
    )


def _table(found: Calibration) -> str:
    """What each statistic detects, in the width and colours of the terminal on stdout."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from tare.calibration.detection import NAMES

    console = Console()
    with console.capture() as capture:
        for title, detections in found.by_place.items():
            table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
            for heading in ("statistic", "detects", "detected at that delay", "false alarms"):
                table.add_column(heading)
            for detection in detections:
                shares = (str(detection.at_limit), str(detection.steps[0]))
                table.add_row(*map(Text, (NAMES[detection.statistic], detection.said, *shares)))
            console.print(Text(printable(title), "bold"))
            console.print(table)
    return capture.get()
