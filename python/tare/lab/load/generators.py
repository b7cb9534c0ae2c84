# SPDX-License-Identifier: Apache-2.0
"""The load on the services of a block: Tare's own, or a foreign generator's."""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tare.errors import InputError, TareError
from tare.lab.environments.environment import LOAD, Environment, Program
from tare.lab.environments.launch import RunError
from tare.lab.load.tare_load import capacity_command, load_command, url
from tare.lab.machine.suspension import Suspension
from tare.lab.processes.cpu_time import of_all, per_request, spent, watched_share
from tare.lab.processes.logs import last_lines
from tare.lab.processes.processes import Family, Process, Processes, StartError
from tare.lab.result.measured import Measured
from tare.lab.result.streams import of_condition, read_stream
from tare.lab.start.runs import Target
from tare.plan import CommandLoad, OwnLoad

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class LoadContext:
    """What every load of a block needs."""

    processes: Processes
    cpus: Sequence[int]
    folder: Path
    log: Path
    tick: Callable[[float], None]
    """Is told the seconds since the load began."""
    look: Callable[[Callable[[], Family]], None] = lambda _: None
    """Is given, all the time, what returns the processes of the generator."""
    environment: Environment | None = None
    """Where the generator runs; None for this host."""

    def start(self, command: Sequence[str], output: Path | None) -> Process:
        """Starts the generator. Raises StartError if there is no such program."""
        if self.environment is None:
            return self.processes.start(
                LOAD, command, directory=self.folder, log=self.log, cpus=self.cpus, output=output
            )
        program = Program(LOAD, command, self.folder, self.log, self.cpus, output=output)
        return self.environment.start(program)

    def family(self, generator: Process) -> Family:
        """The processes of the generator, and their CPU time."""
        where = self.environment or self.processes
        return where.family(generator)

    def watched(self, pids: Sequence[int]) -> str:
        """The numbers that the generator knows processes by, as one word."""
        inside = pids if self.environment is None else self.environment.pids_inside(pids)
        return ",".join(map(str, inside))


@dataclass(frozen=True)
class Ended:
    """A generator that came to its end, or was stopped because there was nothing left to load."""

    printed: str
    """The report of Tare's own."""
    cpu_ns: int
    """CPU time of all its processes."""


def measure(
    load: OwnLoad | CommandLoad, rate: float | None, seed: int, targets: Sequence[Target],
    context: LoadContext,
) -> list[Measured]:  # fmt: skip
    """Sends the load to all targets and returns what it recorded of each, in their order.

    `rate` is in requests a second a target, None without a rate. Raises RunError where the
    generator failed or recorded nothing.
    """
    if isinstance(load, CommandLoad):
        return [_measure_with_command(load, targets[0], context)]
    out, machine = context.folder / "samples.arrow", context.folder / "machine.arrow"
    launches = {target.name: target.launch for target in targets}
    command = load_command(load, rate, launches, context.folder)
    command += ["--seed", str(seed), "--out", str(out), "--machine", str(machine)]
    before = [spent(target.families()) for target in targets]
    for target, found in zip(targets, before, strict=True):
        if found.pids:  # else it died since it was ready; that is found out after the load
            command += ["--watch", f"{target.name}={context.watched(found.pids)}"]
    seconds = (load.warmup + load.duration) / 1e9 * len(targets)
    report = _report(run_generator(command, targets, context, seconds, own=True).printed)
    samples, readings = read_stream(out), read_stream(machine)
    if samples is None or samples.num_rows == 0:
        raise RunError("the load generator recorded no request")
    measured = []
    for target, used in zip(targets, before, strict=True):
        name = target.name
        of_machine = None if readings is None else of_condition(readings, name)
        after, requests = spent(target.families()), report[name]["requests"]
        cpu = {} if of_machine is None else per_request(of_machine)
        if target.launch.environment.settings.is_remote:
            cpu |= _remote_cpu(load, rate, requests, after.all_ns - used.all_ns)
        else:
            cpu = of_all(cpu, watched_share(used, after, context.processes.in_ticks))
        measured.append(
            Measured(
                samples=of_condition(samples, name),
                machine=of_machine,
                requests=requests,
                errors=report[name]["errors"],
                errors_by_kind=report[name].get("errors_by_kind") or {},
                cpu=cpu,
            )
        )
    return measured


def _remote_cpu(load: OwnLoad, rate: float | None, requests: int, used_ns: int) -> dict[str, float]:
    """CPU time per request of a service that the generator cannot see, warm-up included.

    Empty if the number of requests in the warm-up is not known, or if the CPU time is not.
    """
    if rate is None and load.warmup:
        return {}
    sent = requests + (rate or 0.0) * load.warmup / 1e9
    return {"service_ns_per_request": used_ns / sent} if sent and used_ns > 0 else {}


def capacity(load: OwnLoad, target: Target, context: LoadContext) -> dict[str, Any]:
    """The most that one service bears: `{"rate": requests a second, "users": their number}`.

    Raises TareError where it cannot be measured, or none of the requests succeeded.
    """
    command = capacity_command(load, target.launch, context.folder)
    output = run_generator(command, [target], context, 120, own=True).printed
    found = json.loads(output).get("capacity") if output else None
    if not found:
        raise TareError(f"the capacity could not be measured; see {context.log}")
    return dict(found)


def around(targets: Sequence[Target], command: Sequence[str]) -> list[str]:
    """The generator's command under the layer that a target has at both ends of its connections.

    If layers of several targets differ, the longest words count: they do what the others do.
    """
    return [*max((target.launch.around_load for target in targets), key=len, default=[]), *command]


def run_generator(
    command: Sequence[str], targets: Sequence[Target], context: LoadContext, expected_s: float, *,
    own: bool = False,
) -> Ended:  # fmt: skip
    """Runs a generator to its end, or until every target has died: then it printed nothing.

    Tare's own prints its report; what another generator prints is for people and stands in the log.
    """
    command = around(targets, command)
    printed = context.folder / "load.json" if own else None
    # Before the generator starts: a SIGCONT that comes at once must not be missed.
    with Suspension() as suspension:
        try:
            generator = context.start(command, printed)
        except StartError as error:
            raise TareError(f"the load generator does not start: {error}") from error
        begun = time.monotonic()
        limit = 2 * expected_s + 10
        try:
            suspension.restart()
            # A short load may be over when this program gets a CPU again.
            context.look(partial(context.family, generator))
            while generator.code is None:
                context.processes.wait(0.1)
                suspension.look()
                context.look(partial(context.family, generator))
                age = time.monotonic() - begun
                context.tick(age)
                if all(target.process.code is not None for target in targets):
                    return Ended("", context.family(generator).cpu_ns)
                if age > limit:
                    raise RunError(f"the load generator did not end within {limit:.0f} s")
            if suspension.reason:
                raise RunError(suspension.reason)
            spent = context.family(generator).cpu_ns
            if context.environment is not None:
                context.environment.copy_out([context.folder])
        finally:
            context.processes.stop([generator])
    report = printed is not None and printed.exists() and printed.stat().st_size > 0
    # 1 with a report: no request succeeded, and the report has the kinds of errors.
    if generator.code and not (report and generator.code == 1):
        raise RunError(f"the load generator {generator.ending}: {last_line(context.log)}")
    return Ended(printed.read_text(encoding="utf-8") if printed else "", spent)


def last_line(log: Path) -> str:
    """The last line of a log, or where to look."""
    return next(iter(last_lines(log, 1)), f"see {log}")


def _report(printed: str) -> dict[str, Any]:
    try:
        return {target["name"]: target for target in json.loads(printed)["targets"]}
    except (ValueError, KeyError) as error:
        raise RunError("the load generator ended without a report") from error


def _measure_with_command(load: CommandLoad, target: Target, context: LoadContext) -> Measured:
    """Runs a foreign generator on one target and imports its output."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from tare.plan.schema.placeholders import fill
    from tare.samples import ImportOptions, read_load_output

    output = context.folder / load.output
    launch = target.launch
    values = {
        **launch.placeholders, "port": launch.door, "url": url(load, launch), "output": output,
        "dir": context.folder,
    }  # fmt: skip
    before = spent(target.families())
    command = [fill(word, values) for word in load.command]
    generator = run_generator(command, [target], context, load.duration / 1e9)
    used_ns = spent(target.families()).all_ns - before.all_ns
    if not output.exists():
        raise RunError(f"the load generator wrote no {load.output}: {last_line(context.log)}")
    try:
        options = ImportOptions(load.columns, load.unit)
        samples: pa.Table = read_load_output(output, load.format, options)
    except InputError as error:
        raise RunError(str(error)) from error
    sent = samples.num_rows
    if sent == 0:
        raise RunError(f"{load.output} contains no request")
    told = {key.decode(): text.decode() for key, text in samples.schema.metadata.items()}
    if load.warmup:
        samples = _without_first(samples, load)
    requests = samples.num_rows
    failed = pc.sum(pc.invert(samples["ok"])).as_py() if "ok" in samples.column_names else 0
    return Measured(
        samples=samples,
        machine=None,
        requests=requests,
        errors=failed or 0,
        errors_by_kind={},
        cpu={
            f"{who}_ns_per_request": ns / sent
            for who, ns in (("service", used_ns), ("generator", generator.cpu_ns))
            if ns > 0  # Without cgroups, what is less than a tick of the clock is not known.
        },
        notes=told["warnings"].splitlines(),
        lost=float(told.get("lost", 0)),
        stepped=told.get("stepped"),
    )


def _without_first(samples: "pa.Table", load: CommandLoad) -> "pa.Table":
    """The samples after the warm-up, numbered from 0."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if "start_ns" not in samples.column_names:
        raise RunError(
            f"{load.output} has no times, so its warm-up cannot be removed:"
            ' set warmup = "0s" and let the generator warm up before it records'
        )
    start = samples["start_ns"]
    later = pc.greater_equal(start, pc.add(pc.min(start), load.warmup))
    # What failed without a start stays: it counts as failed, whenever that was.
    kept = samples.filter(pc.fill_null(later, True))
    if "seq" not in kept.column_names:
        return kept
    seq = kept.schema.get_field_index("seq")
    return kept.set_column(seq, kept.schema.field(seq), pa.array(range(kept.num_rows), pa.int64()))
