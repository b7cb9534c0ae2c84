# SPDX-License-Identifier: Apache-2.0
"""One block in turns: one service under load, and layers of the whole machine switched on and off.

Every condition has its turns in random order, so that what drifts meets all alike. What is
recorded in the turns of a condition is its run of the block.
"""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from tare.lab import strain
from tare.lab.agents import Agent, AgentError
from tare.lab.block import Group
from tare.lab.cpu_time import of_all, per_request, spent, watched_share
from tare.lab.launch import RunError
from tare.lab.layers import map as map_layer
from tare.lab.load import Bench, Measured, Target, around, last_line
from tare.lab.processes import Process, StartError
from tare.lab.standstill import Standstill
from tare.lab.store import read_stream
from tare.lab.tare_load import load_command
from tare.lab.turns import Turn, errors_by_kind, numbered, of_turns, order_of_turns
from tare.plan import Condition, OwnLoad
from tare.plan.alternation import of_service, whole_machine
from tare.plan.layers import AgentLayer, MapLayer
from tare.samples.manifest import RunEntry

SHARED = ""
"""The service of all conditions; no condition has this name."""
TARGET = "service"
LONGEST_S = 24 * 3600
"""Of a load that the lab ends after its last turn."""
LOAD_GRACE_S = 30.0
"""For the load generator to receive what is under way, and to write it."""
LOOK_S = 0.1


class AlternatingGroup(Group):
    """The conditions of one block and environment, in turns on one service."""

    def measure(
        self, runs: Sequence[tuple[int, Condition]], asked: float | None, seed: int
    ) -> list[tuple[RunEntry, list[str]]]:
        """`Group.measure`, with the turns of each condition as its run."""
        conditions = [condition for _, condition in runs]
        self.turns: dict[str, list[Turn]] = {condition.name: [] for condition in conditions}
        self.agents_ns: dict[str, int] = {}
        measured: dict[str, Measured] = {}
        layers = of_service(conditions[0])
        shared = conditions[0].model_copy(update={"name": SHARED, "layers": layers})
        with ExitStack() as stack:
            targets = self.start(stack, [shared])
            if targets:
                generator, watches = strain.Watch([]), self.watch(targets)
                try:
                    measured = self.load(targets[0], conditions, asked, seed)
                except RunError as error:
                    self.reasons[SHARED] = str(error)
                self.look_at_strains(watches, generator)
            self.look_for_crashes(targets)
        if targets:
            costs = self.launches[SHARED].costs
            self.check_costs(SHARED, {layer: read_stream(path) for layer, path in costs.items()})
        for name in self.turns:
            self.share(name)
        if asked is not None:
            self.check_rate(asked, measured, None)
        return self.store_all(runs, measured)

    def share(self, name: str) -> None:
        """What befell the service befell each condition."""
        if SHARED in self.reasons:
            self.reasons.setdefault(name, self.reasons[SHARED])
        if SHARED in self.launches:
            # What the service's own layers cost is of no one condition.
            self.launches[name] = replace(self.launches[SHARED], costs={})
        if SHARED in self.strains:
            self.strains[name] = self.strains[SHARED]
        self.logs.setdefault(name, []).extend(self.logs.get(SHARED, []))

    def new_log(self, condition: str, part: str = "") -> Path:
        return super().new_log(condition, part or (TARGET if condition == SHARED else ""))

    def load(
        self, target: Target, conditions: Sequence[Condition], asked: float | None, seed: int
    ) -> dict[str, Measured]:
        """Loads the service through all turns. Raises RunError where no condition can count."""
        plan, processes, bench = self.lab.plan, self.lab.processes, self.bench([target])
        assert isinstance(plan.load, OwnLoad)
        out, machine = bench.folder / "samples.arrow", bench.folder / "machine.arrow"
        endless = plan.load.model_copy(update={"duration": LONGEST_S * 10**9, "warmup": 0})
        command = load_command(endless, asked, {TARGET: target.launch}, bench.folder)
        command += ["--seed", str(seed), "--out", str(out), "--machine", str(machine)]
        before = spent(target.families())
        if before.pids:  # else it died since it was ready; that is found out after the load
            command += ["--watch", f"{TARGET}={','.join(map(str, before.pids))}"]
        agents = {one.name: self.agents(one, target) for one in conditions}
        order = order_of_turns(f"{seed}/{self.environment}", [*self.turns], plan.turns)
        with Standstill() as standstill:
            try:
                generator = processes.start(
                    "load", around([target], command), directory=bench.folder, log=bench.log,
                    cpus=bench.cpus, output=bench.folder / "load.json", grace_s=LOAD_GRACE_S,
                )  # fmt: skip
            except StartError as error:
                raise RunError(f"the load generator does not start: {error}") from error
            standstill.restart()
            try:
                going_on = GoingOn(bench, target, generator, standstill)
                going_on.wait(plan.load.warmup)
                for name in order:
                    if name not in self.reasons:
                        self.take_turn(name, agents[name], going_on)
                going_on.wait(0)
                if standstill.reason:
                    raise RunError(standstill.reason)
            finally:
                # The load goes on until no agent is left: the last turn is like all others.
                processes.stop([generator])
        samples, readings = read_stream(out), read_stream(machine)
        if samples is None or readings is None or samples.num_rows == 0:
            raise RunError("the load generator recorded no request")
        after = spent(target.families())
        share = watched_share(before, after, processes.in_ticks)
        found = {}
        for name, turns in self.turns.items():
            mine = numbered(of_turns(samples, readings, turns))
            errors = errors_by_kind(mine)
            of_machine = of_turns(readings, readings, turns)
            cpu = of_all(per_request(of_machine), share)
            if name in self.agents_ns:
                seconds = sum(turn.end_ns - turn.start_ns for turn in turns) / 1e9
                cpu["agents_ns_per_second"] = self.agents_ns[name] / max(seconds, 1e-9)
            if mine.num_rows == 0:
                self.reasons.setdefault(name, "no request was answered within its turns")
                continue
            found[name] = Measured(
                mine, of_machine, mine.num_rows, sum(errors.values()), errors, cpu
            )
        return found

    def agents(self, condition: Condition, target: Target) -> list[Agent]:
        """The agents of a condition, off."""
        launch, name = target.launch, condition.name
        place = f"{self.block}-{self.environment}-{name}"
        unique = f"tare-{self.lab.experiment}-{place}".replace("~", "-")
        values = {**launch.placeholders, "port": launch.door, "pid": target.process.pid}
        found = []
        for layer in whole_machine(condition):
            one = map_layer.agent(layer) if isinstance(layer, MapLayer) else layer
            assert isinstance(one, AgentLayer)
            found.append(
                Agent(
                    layer=one,
                    name=f"{unique}-{one.name}",
                    processes=self.lab.processes,
                    cpus=self.lab.cpus,
                    log=self.new_log(name, one.name),
                    fresh_folder=partial(self.lab.folder.fresh_work, f"{place}-{one.name}"),
                    values=values,
                )
            )
        return found

    def take_turn(self, name: str, agents: Sequence[Agent], going_on: "GoingOn") -> None:
        """Switches a condition's agents on, lets the load go on, and switches them off.

        A condition whose agent fails has no more turns: the others can count without it. Raises
        RunError where an agent cannot be switched off, or where the load has ended.
        """
        plan = self.lab.plan
        number = len(self.turns[name]) + 1
        try:
            with ExitStack() as stack:
                for agent in agents:
                    stack.callback(agent.switch_off)
                    agent.switch_on()
                going_on.wait(plan.settle)
                used_ns = [agent.cpu_ns() for agent in agents]
                start_ns = going_on.now_ns()
                going_on.wait(plan.turn)
                turn = Turn(start_ns, going_on.now_ns())
                # All at once, before a ready command takes its time.
                for before_ns, after_ns in zip(
                    used_ns, [agent.cpu_ns() for agent in agents], strict=True
                ):
                    if before_ns is not None and after_ns is not None:
                        self.agents_ns.setdefault(name, 0)
                        self.agents_ns[name] += after_ns - before_ns
                for agent in agents:
                    agent.check_ready()
        except AgentError as error:
            self.reasons[name] = f"turn {number} of {plan.turns}: {error}"
        else:
            self.turns[name].append(turn)


class GoingOn:
    """Lets the load go on for some time, and sees when it has ended."""

    def __init__(
        self, bench: Bench, target: Target, generator: Process, standstill: Standstill
    ) -> None:
        self.bench, self.target = bench, target
        self.generator, self.standstill = generator, standstill
        self.begun = time.monotonic()
        # As tare-load does: its times never step.
        self.epoch_ns = time.time_ns() - time.monotonic_ns()

    def now_ns(self) -> int:
        """Nanoseconds since the Unix epoch, as in the samples."""
        return self.epoch_ns + time.monotonic_ns()

    def wait(self, ns: int) -> None:
        """Returns after some time. Raises RunError where service or load ended before."""
        until = time.monotonic() + ns / 1e9
        self.standstill.restart()  # agents take their time to start and to end
        while True:
            left = until - time.monotonic()
            self.bench.processes.wait(min(LOOK_S, max(left, 0)))
            self.standstill.look()
            self.bench.tick(time.monotonic() - self.begun)
            if self.target.process.code is not None:
                raise RunError(f"the service {self.target.process.ending} during the load")
            if self.generator.code is not None:
                said = last_line(self.bench.log)
                raise RunError(f"the load generator {self.generator.ending}: {said}")
            if time.monotonic() >= until:
                return
