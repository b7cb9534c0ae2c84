# SPDX-License-Identifier: Apache-2.0
from dataclasses import replace
from pathlib import Path

import pytest
from bench.log import moobench
from bench.log.built import has_header
from bench.log.configurations import BY_NAME, CONFIGURATIONS
from bench.log.loops import Loop
from bench.log.moobench import JARS, Load, Machine
from bench.log.moobench_tables import main, share


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    found = moobench._jdks()
    if not found or not JARS[0].exists():
        pytest.skip("there is no JDK from 17 on, or java/ is not built")
    return Machine(min(found), found[min(found)], tmp_path)


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
    one = BY_NAME[name]
    if one.family == "cloudprofiler-like" and not has_header("zstd.h"):
        pytest.skip("the header of zstd is not installed")
    kept = tmp_path / "kept" / "raw-1-10-0.csv"
    loop = machine.loop(one, Load(calls), kept)
    assert machine.failures == {}
    assert loop is not None
    assert loop.complete == (1.0 if one.events else None)
    assert loop.nanoseconds.size == calls // 2
    assert len(kept.read_text().splitlines()) == calls


def test_what_fails_is_named_and_not_tried_again(machine: Machine) -> None:
    one = replace(BY_NAME["no instrumentation"], jvm=("-XX:NoSuchOption",))
    assert machine.loop(one, Load(10)) is None
    [(name, reason)] = machine.failures.items()
    assert name == one.name
    assert "NoSuchOption" in reason
    assert machine.loop(BY_NAME[name], Load(10)) is None
    good = machine.loop(BY_NAME["tare, null"], Load(2_000))
    assert isinstance(good, Loop)
    page = main(17, {"tare, null": [good]}, machine.failures)
    assert f"- not measured: {name}: exit 1" in page
    assert "| tare, null | 2,000 |" in page


def test_what_hangs_is_ended(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moobench, "TIMEOUT", 1)
    assert machine.loop(BY_NAME["tare, zstd"], Load(2_000_000, depth=200)) is None
    assert "timed out" in machine.failures["tare, zstd"]


def test_only_all_are_a_hundred_percent() -> None:
    assert [share(one) for one in (1.0, 1 - 1e-9, 0.5)] == ["100 %", "99.999 %", "50.000 %"]


def test_names_and_places_are_told_apart() -> None:
    assert len(BY_NAME) == len(CONFIGURATIONS)
    assert {one.family for one in CONFIGURATIONS if one.is_peer} == {
        "cloudprofiler-like",
        "kieker",
        "opentelemetry",
        "flight recorder",
    }
