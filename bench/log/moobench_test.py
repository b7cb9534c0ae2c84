# SPDX-License-Identifier: Apache-2.0
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bench.cases import read_bars
from bench.log import moobench
from bench.log.build import has_header
from bench.log.loops import Loop
from bench.log.measure import QUICK_LOOPS
from bench.log.moobench import JARS, Load, Machine
from bench.log.moobench_configurations import BY_NAME, CONFIGURATIONS, PEERS, Configuration
from bench.log.moobench_tables import main, share
from bench.log.sinks import Program, Sink


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    found = moobench._jdks()
    if not found or not JARS[0].exists():
        pytest.skip("there is no JDK from 17 on, or java/ is not built")
    return Machine(min(found), found[min(found)], tmp_path)


# Of each kind of peer that others wrote: as many calls as its queue holds.
WRITTEN_BY_OTHERS = (
    "kieker, text file",
    "kieker, binary file",
    "kieker, TCP",
    "opentelemetry, logging",
    "opentelemetry, Zipkin",
    "opentelemetry, OTLP",
)


@pytest.mark.integration
@pytest.mark.parametrize("name", WRITTEN_BY_OTHERS)
def test_all_events_of_others_are_found(machine: Machine, name: str) -> None:
    configuration = BY_NAME[name]
    for tool in (configuration.family, *(["zipkin"] if "Zipkin" in name else [])):
        if not (PEERS / f"{tool}.jar").exists():
            pytest.skip(f"{tool} is not there: setup/install-peers {tool}")
    loop = machine.loop(configuration, Load(100))
    assert machine.failures == {}
    assert loop is not None
    assert loop.complete == 1.0


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("name", "calls"),
    [
        ("no instrumentation", 2_000),
        ("tare, null", 2_000),
        ("tare, zstd", 20_000),
        ("tare, agent", 20_000),
        ("flight recorder", 20_000),
        # More than a block of each channel, and a part of one.
        ("cloudprofiler-like, asleep", 110_000),
        ("cloudprofiler-like, spinning", 2_000),
    ],
)
def test_all_events_are_found(machine: Machine, tmp_path: Path, name: str, calls: int) -> None:
    configuration = BY_NAME[name]
    if configuration.family == "cloudprofiler-like" and not has_header("zstd.h"):
        pytest.skip("the header of zstd is not installed")
    kept = tmp_path / "kept" / "raw-1-10-0.csv"
    loop = machine.loop(configuration, Load(calls), kept)
    assert machine.failures == {}
    assert loop is not None
    assert loop.complete == (1.0 if configuration.events else None)
    assert loop.nanoseconds.size == calls // 2
    assert len(kept.read_text().splitlines()) == calls


def test_what_fails_is_named_and_not_tried_again(machine: Machine) -> None:
    configuration = replace(BY_NAME["no instrumentation"], jvm=("-XX:NoSuchOption",))
    assert machine.loop(configuration, Load(10)) is None
    [(name, reason)] = machine.failures.items()
    assert name == configuration.name
    assert "NoSuchOption" in reason
    assert machine.loop(BY_NAME[name], Load(10)) is None
    good = machine.loop(BY_NAME["tare, null"], Load(2_000))
    assert isinstance(good, Loop)
    page = main(17, {"tare, null": [good]}, machine.failures)
    assert f"- not measured: {name}: exit 1" in page
    assert "| tare, null | 2,000 |" in page


def test_peer_that_is_not_installed_is_named_without_a_path(machine: Machine) -> None:
    of_none = replace(BY_NAME["kieker, TCP"], family="flight recorder")
    assert machine.loop(of_none, Load(10)) is None
    [reason] = machine.failures.values()
    assert reason.startswith("flight recorder is not installed: setup/install-peers ")


def test_events_that_nobody_knows_of_end_the_bench(machine: Machine) -> None:
    @contextmanager
    def unknown(_: Program) -> Iterator[Sink]:
        def found(logged: int) -> int:
            raise SystemExit(f"{logged} logged, none kept, none lost")

        yield Sink(found)

    with pytest.raises(SystemExit, match="2000 logged"):
        machine.loop(replace(BY_NAME["tare, null"], events=1, sink=unknown), Load(200))


def test_what_hangs_is_ended(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moobench, "TIMEOUT", 1)
    assert machine.loop(BY_NAME["tare, zstd"], Load(2_000_000, depth=200)) is None
    assert "timed out" in machine.failures["tare, zstd"]


def test_nothing_stays_of_what_ignores_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moobench, "TIMEOUT", 0.5)
    monkeypatch.setattr(moobench, "GRACE", 0.1)
    child = "trap '' TERM; echo $$; while :; do sleep 1; done"
    output = tmp_path / "output"
    with pytest.raises(subprocess.TimeoutExpired):
        moobench._finished(["sh", "-c", 'sh -c "$0" & wait', child], {}, output)
    process = Path("/proc") / output.read_text().strip()
    while process.exists() and "State:\tZ" not in (process / "status").read_text():
        time.sleep(0.01)


def test_depths_and_threads_are_measured_in_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[tuple[str, Load]] = []

    def loop(_: Machine, configuration: Configuration, load: Load) -> Loop:
        done.append((configuration.name, load))
        nanoseconds = np.full(4, 1_000 * load.depth * load.threads)
        return Loop(nanoseconds, np.ones(4, np.int64), 0, 1.0 if configuration.events else None)

    monkeypatch.setattr(Machine, "loop", loop)
    depths, threads = moobench._scaled(Machine(17, tmp_path, tmp_path))
    whole = len(done) // moobench.SCALED_LOOPS
    turns = [done[at : at + whole] for at in range(0, len(done), whole)]
    assert len(turns) == moobench.SCALED_LOOPS
    assert all({*turn} == {*done} and len(turn) == len({*turn}) for turn in turns)
    assert turns[0] != turns[1]
    assert "| tare, zstd | 2.000 | 4.000 | 8.000 | 16.000 | 32.000 | 64.000 | 128.000 |" in depths
    assert "| kieker, binary file | 10.000 | 20.000 | 40.000 |" in threads
    assert "cloudprofiler" not in threads


def test_one_disturbed_loop_of_the_quick_bench_misses_no_bar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loops: Counter[tuple[int, str]] = Counter()

    def loop(machine: Machine, configuration: Configuration, *_: object) -> Loop:
        loops[machine.version, configuration.name] += 1
        level = 250 if configuration.family == "tare" else 4_000
        is_disturbed = (
            configuration.family == "tare" and loops[machine.version, configuration.name] == 1
        )
        nanoseconds = np.full(4, 10 * level if is_disturbed else level)
        return Loop(nanoseconds, np.ones(4, np.int64), 0, 1.0)

    monkeypatch.setattr(Machine, "loop", loop)
    monkeypatch.setattr(moobench, "_jdks", lambda: {17: tmp_path, 25: tmp_path})
    monkeypatch.setattr(moobench, "GITHUB", tmp_path / "moobench.json")
    found = moobench.measure(tmp_path, QUICK_LOOPS, quick=True)
    cases = {case.name: case for case in found.cases}
    bars = {name: bar for name, bar in read_bars("log").items() if name.startswith("java-")}
    assert bars.keys() <= cases.keys()
    assert [name for name, bar in bars.items() if not bar.met(cases[name])] == []
    assert {name for _, name in loops} == {
        configuration.name
        for configuration in CONFIGURATIONS
        if configuration.is_peer or configuration.name.startswith("tare, zstd")
    }


def test_only_all_are_a_hundred_percent() -> None:
    assert [share(part) for part in (1.0, 1 - 1e-9, 0.5)] == ["100 %", "99.999 %", "50.000 %"]


def test_names_and_places_are_told_apart() -> None:
    assert len(BY_NAME) == len(CONFIGURATIONS)
    assert {configuration.family for configuration in CONFIGURATIONS if configuration.is_peer} == {
        "cloudprofiler-like",
        "kieker",
        "opentelemetry",
        "flight recorder",
    }
