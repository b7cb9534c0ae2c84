# SPDX-License-Identifier: Apache-2.0
"""One block in turns: one service under load, and layers of the whole machine switched on and off.

Every condition has its turns in random order, so that what drifts meets all alike. What is
recorded in the turns of a condition is its run of the block.
"""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tare.lab.environments.launch import RunError
from tare.lab.layers import map as map_layer
from tare.lab.load.generators import LoadContext, around, last_line
from tare.lab.load.tare_load import load_command
from tare.lab.machine.suspension import Suspension
from tare.lab.processes.cpu_time import of_all, per_request, spent, watched_share
from tare.lab.processes.processes import Process, StartError
from tare.lab.result.measured import Measured
from tare.lab.result.streams import read_stream
from tare.lab.run.block import Group, check_costs, costs_of, metrics_of, targets_of
from tare.lab.run.turns import (
    Turn,
    errors_by_kind,
    metrics_of_turns,
    numbered,
    of_turns,
    order_of_turns,
)
from tare.lab.start.agents import Agent, AgentError
from tare.lab.start.places import Places
from tare.lab.start.runs import Run, Target
from tare.plan import OwnLoad
from tare.plan.schema.alternation import of_service, whole_machine
from tare.plan.schema.layers import AgentLayer, MapLayer
from tare.samples.manifest import RunEntry

if TYPE_CHECKING:
    import pyarrow as pa

SHARED = ""
"""The service of all conditions; no condition has this name."""
TARGET = "service"
LONGEST_S = 24 * 3600
"""Of a load that the lab ends after its last turn."""
LOAD_GRACE_S = 30.0
"""For the load generator to receive what is under way, and to write it."""
LOOK_S = 0.1


@dataclass
class InTurns:
    """A run whose layers are switched on and off, with its turns up to now."""

    run: Run
    agents: Sequence[Agent]
    turns: list[Turn] = field(default_factory=list)
    agents_ns: int | None = None
    """CPU time of its agents in its turns, as far as it is known."""

    def add_agents_ns(self, before: Sequence[int | None], after: Sequence[int | None]) -> None:
        """Adds what the agents used in a turn."""
        for before_ns, after_ns in zip(before, after, strict=True):
            if before_ns is not None and after_ns is not None:
                self.agents_ns = (self.agents_ns or 0) + after_ns - before_ns


class AlternatingGroup(Group):
    """The conditions of one block and environment, in turns on one service."""

    def measure(
        self, compared: Sequence[tuple[int, str]], asked: float | None, seed: int
    ) -> list[tuple[RunEntry, list[str]]]:
        """`Group.measure`, with the turns of each condition as its run."""
        runs = [self.run(number, name) for number, name in compared]
        shared = self.shared(runs[0])
        with ExitStack() as stack:
            up = self.start(stack, [shared])
            if up:
                with self.observed(up):
                    self.load_in_turns(shared, runs, asked, seed)
            self.look_for_crashes(up)
        if shared.target is not None:
            costs = costs_of(shared)
            check_costs(shared, {layer: read_stream(path) for layer, path in costs.items()})
        for run in runs:
            share(shared, run)
        if asked is not None:
            self.check_rate(asked, runs, None)
        return self.store_all(runs)

    def shared(self, first: Run) -> Run:
        """The run of the service that all conditions share."""
        layers = of_service(first.condition)
        condition = first.condition.model_copy(update={"name": SHARED, "layers": layers})
        unique = f"{self.block}/{self.group}/{SHARED}"
        places = Places(self.lab.plan, first.settings, self.lab.processes, unique)
        return Run(0, SHARED, condition, first.settings, places)

    def new_log(self, run: Run | None, part: str = "") -> Path:
        own = TARGET if run is not None and run.name == SHARED else ""
        return super().new_log(run, part or own)

    def load_in_turns(
        self, shared: Run, runs: Sequence[Run], asked: float | None, seed: int
    ) -> None:
        """Loads the service through all turns. Raises RunError where no condition can count."""
        plan, processes, context = self.lab.plan, self.lab.processes, self.context([shared])
        (target,) = targets_of([shared])
        assert isinstance(plan.load, OwnLoad)
        out, machine = context.folder / "samples.arrow", context.folder / "machine.arrow"
        endless = plan.load.model_copy(update={"duration": LONGEST_S * 10**9, "warmup": 0})
        command = load_command(endless, asked, {TARGET: target.launch}, context.folder)
        command += ["--seed", str(seed), "--out", str(out), "--machine", str(machine)]
        before = spent(target.families())
        if before.pids:  # else it died since it was ready; that is found out after the load
            command += ["--watch", f"{TARGET}={','.join(map(str, before.pids))}"]
        in_turns = {run.name: InTurns(run, self.agents(run, target)) for run in runs}
        order = order_of_turns(f"{seed}/{self.group}", [*in_turns], plan.turns)
        with Suspension() as suspension:
            try:
                generator = processes.start(
                    "load", around([target], command), directory=context.folder, log=context.log,
                    cpus=context.cpus, output=context.folder / "load.json", grace_s=LOAD_GRACE_S,
                )  # fmt: skip
            except StartError as error:
                raise RunError(f"the load generator does not start: {error}") from error
            suspension.restart()
            try:
                going_on = GoingOn(context, target, generator, suspension)
                going_on.wait(plan.load.warmup)
                for name in order:
                    if in_turns[name].run.reason is None:
                        self.take_turn(in_turns[name], going_on)
                going_on.wait(0)
                if suspension.reason:
                    raise RunError(suspension.reason)
            finally:
                # The load goes on until no agent is left: the last turn is like all others.
                processes.stop([generator])
        samples, readings = read_stream(out), read_stream(machine)
        if samples is None or readings is None or samples.num_rows == 0:
            raise RunError("the load generator recorded no request")
        share = watched_share(before, spent(target.families()), processes.in_ticks)
        assert self.sampler is not None
        metrics = metrics_of(self.sampler, shared)
        for run_in_turns in in_turns.values():
            run_in_turns.run.measured = measured_in(run_in_turns, samples, readings, share)
            run_in_turns.run.metrics = metrics_of_turns(metrics, run_in_turns.turns)
            if run_in_turns.run.measured is None:
                run_in_turns.run.fail("no request was answered within its turns")

    def agents(self, run: Run, target: Target) -> list[Agent]:
        """The agents of a run, off."""
        launch = target.launch
        place = f"{self.block}-{self.group}-{run.name}"
        unique = f"tare-{self.lab.experiment}-{place}".replace("~", "-")
        values = {**launch.placeholders, "port": launch.door, "pid": target.process.pid}
        found = []
        for layer in whole_machine(run.condition):
            agent_layer = map_layer.agent(layer) if isinstance(layer, MapLayer) else layer
            assert isinstance(agent_layer, AgentLayer)
            found.append(
                Agent(
                    layer=agent_layer,
                    name=f"{unique}-{agent_layer.name}",
                    processes=self.lab.processes,
                    cpus=self.lab.cpus,
                    log=self.new_log(run, agent_layer.name),
                    fresh_folder=partial(self.lab.folder.fresh_work, f"{place}-{agent_layer.name}"),
                    values=values,
                )
            )
        return found

    def take_turn(self, run_in_turns: InTurns, going_on: "GoingOn") -> None:
        """Switches a run's agents on, lets the load go on, and switches them off.

        A run whose agent fails has no more turns: the others can count without it. Raises
        RunError where an agent cannot be switched off, or where the load has ended.
        """
        plan = self.lab.plan
        try:
            with ExitStack() as stack:
                for agent in run_in_turns.agents:
                    stack.callback(agent.switch_off)
                    agent.switch_on()
                going_on.wait(plan.settle)
                self.sample()
                used_ns = [agent.cpu_ns() for agent in run_in_turns.agents]
                start_ns = going_on.now_ns()
                going_on.wait(plan.turn)
                turn = Turn(start_ns, going_on.now_ns())
                # All at once, before a ready command takes its time.
                run_in_turns.add_agents_ns(
                    used_ns, [agent.cpu_ns() for agent in run_in_turns.agents]
                )
                self.sample()
                for agent in run_in_turns.agents:
                    agent.check_ready()
        except AgentError as error:
            run_in_turns.run.reason = f"turn {len(run_in_turns.turns) + 1} of {plan.turns}: {error}"
        else:
            run_in_turns.turns.append(turn)


def share(shared: Run, run: Run) -> None:
    """What befell the service befell each run."""
    if shared.reason is not None:
        run.fail(shared.reason)
    # What the service's own layers cost is of no one condition.
    run.launches = {name: replace(launch, costs={}) for name, launch in shared.launches.items()}
    run.saturation = shared.saturation
    run.observations = shared.observations and replace(shared.observations, condition=run.condition)
    run.logs += shared.logs


def measured_in(
    run_in_turns: InTurns, samples: "pa.Table", readings: "pa.Table", share: float | None
) -> Measured | None:
    """What was recorded in the turns of a run; None without any request."""
    mine = numbered(of_turns(samples, readings, run_in_turns.turns))
    if mine.num_rows == 0:
        return None
    errors = errors_by_kind(mine)
    of_machine = of_turns(readings, readings, run_in_turns.turns)
    cpu = of_all(per_request(of_machine), share)
    if run_in_turns.agents_ns is not None:
        seconds = sum(turn.end_ns - turn.start_ns for turn in run_in_turns.turns) / 1e9
        cpu["agents_ns_per_second"] = run_in_turns.agents_ns / max(seconds, 1e-9)
    return Measured(mine, of_machine, mine.num_rows, sum(errors.values()), errors, cpu)


class GoingOn:
    """Lets the load go on for some time, and sees when it has ended."""

    def __init__(
        self, context: LoadContext, target: Target, generator: Process, suspension: Suspension
    ) -> None:
        self.context, self.target = context, target
        self.generator, self.suspension = generator, suspension
        self.begun = time.monotonic()
        # As tare-load does: its times never step.
        self.epoch_ns = time.time_ns() - time.monotonic_ns()

    def now_ns(self) -> int:
        """Nanoseconds since the Unix epoch, as in the samples."""
        return self.epoch_ns + time.monotonic_ns()

    def wait(self, ns: int) -> None:
        """Returns after some time. Raises RunError where service or load ended before."""
        until = time.monotonic() + ns / 1e9
        self.suspension.restart()  # agents take their time to start and to end
        while True:
            left = until - time.monotonic()
            self.context.processes.wait(min(LOOK_S, max(left, 0)))
            self.suspension.look()
            self.context.look(partial(self.context.family, self.generator))
            self.context.tick(time.monotonic() - self.begun)
            if self.target.process.code is not None:
                raise RunError(f"the service {self.target.process.ending} during the load")
            if self.generator.code is not None:
                said = last_line(self.context.log)
                raise RunError(f"the load generator {self.generator.ending}: {said}")
            if time.monotonic() >= until:
                return
