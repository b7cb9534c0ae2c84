# SPDX-License-Identifier: Apache-2.0
"""Layers of the whole machine are switched on and off while one nginx goes on serving."""

import json
import signal
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.lab.conftest import HELD, Experiment, family, none_left
from tests.waiting import SECONDS, wait_for

TURNS = 'turn = "50ms"\nsettle = "0s"\n'
LOAD = 'warmup = "20ms"\n'
# Notes when it is on and off, on the clock of the samples.
NOTES = (
    'trap "date +%s%N >>$0/off; exit" TERM; date +%s%N >>"$0/on"; echo on; '
    "while :; do sleep 0.01; done"
)
# Leaves a process elsewhere, which another command stops.
ELSEWHERE = 'setsid sleep 600 & echo $! >"$0/elsewhere"'
STOP = 'echo stop >>"$0/stops"; kill "$(cat "$0/elsewhere")" 2>/dev/null; :'


def agent(script: str, name: str = "notes", **keys: object) -> str:
    """A layer that is a shell script, whose first argument is the folder of the plan."""
    keys = {"type": "agent", "name": name, "start": ["sh", "-c", script, "{plan}"], **keys}
    return "{ " + ", ".join(f"{key} = {json.dumps(value)}" for key, value in keys.items()) + " }"


def stamps(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().split()]


def starts(experiment: Experiment, condition: str) -> list[int]:
    files = (experiment.result / f"samples/condition={condition}").rglob("*.parquet")
    return [start for file in files for start in pq.read_table(file)["start_ns"].to_pylist()]


def readings(experiment: Experiment, condition: str) -> list[int]:
    """The middles of the readings of machine and service."""
    files = (experiment.result / f"machine/condition={condition}").rglob("*.parquet")
    rows = [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]
    assert {row["subject"] for row in rows} == {"machine", "service", "generator"}
    return [row["start_ns"] + row["duration_ns"] // 2 for row in rows if row["slice"] is None]


def test_samples_belong_to_the_turns_of_their_condition(experiment: Experiment) -> None:
    ready = ["grep", "-q", "on", "{log}"]
    experiment.write_plan(top=TURNS, load=LOAD, layers=agent(NOTES, ready=ready))
    done = experiment.run("--blocks", "1", "--json")
    assert done.returncode == 0, done.stderr
    manifest = experiment.manifest
    assert manifest["design"] == "alternating"
    assert manifest["turns"] == {"of_condition": 8, "turn_ns": 5 * 10**7, "settle_ns": 0}
    assert [run["valid"] for run in manifest["runs"]] == [True] * 3
    on, off = stamps(experiment.folder / "on"), stamps(experiment.folder / "off")
    assert len(on) == len(off) == 8
    times = list(zip(on, off, strict=True))

    def is_on(start: int) -> bool:
        return any(begin <= start <= end for begin, end in times)

    assert all(map(is_on, starts(experiment, "two")))
    assert all(map(is_on, readings(experiment, "two")))
    for name in ("one", "one~again"):
        assert not any(map(is_on, starts(experiment, name)))
        assert not any(map(is_on, readings(experiment, name)))
        assert readings(experiment, name)
    for run in manifest["runs"]:
        assert run["requests"] == len(starts(experiment, run["condition"])) > 0
        assert run["cpu"]["service_ns_per_request"] > 0
        assert ("agents_ns_per_second" in run["cpu"]) == (run["condition"] == "two")
    (primary,) = [
        comparison
        for comparison in json.loads(done.stdout)["comparisons"]
        if comparison["metric"] == "p50"
    ]
    assert primary["runs"] == {"baseline": 1, "condition": 1}


def test_an_agent_that_dies_makes_its_condition_invalid(experiment: Experiment) -> None:
    # Only what a turn's end shows: it dies of its own in the third turn.
    dies = 'echo x >>"$0/n"; echo broken probe; [ "$(wc -l <"$0/n")" -lt 3 ] && exec sleep 600'
    experiment.write_plan(top=TURNS, load=LOAD, layers=agent(f"{dies}; exit 4"))
    assert experiment.measure(blocks=1).returncode == 0
    (run,) = experiment.runs("two")
    assert not run["valid"]
    assert run["reason"] == "turn 3 of 8: notes: exited with code 4: broken probe"
    assert run["log_tail"][0] == "broken probe"
    assert len((experiment.folder / "n").read_text().split()) == 3
    assert all(run["valid"] for name in ("one", "one~again") for run in experiment.runs(name))


def test_an_agent_that_never_starts_ends_the_experiment(experiment: Experiment) -> None:
    script = "echo one; echo no BTF here >&2; exit 1"
    experiment.write_plan(top=TURNS, load=LOAD, layers=agent(script, ready="false"))
    done = experiment.measure(blocks=4)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith(
        "tare: 'two' failed in the first two blocks: turn 1 of 8: notes: exited with code 1 before"
        " it was ready: no BTF here; "
    )
    assert {run["block"] for run in experiment.manifest["runs"]} == {1, 2}


def test_the_service_that_dies_ends_all_runs_of_the_block(experiment: Experiment) -> None:
    kill = 'echo x >>"$0/n"; [ "$(wc -l <"$0/n")" -lt 2 ] || kill -9 "$1"; exec sleep 600'
    layer = agent(kill, start=["sh", "-c", kill, "{plan}", "{pid}"])
    experiment.write_plan(top=TURNS, load=LOAD, layers=layer)
    assert experiment.measure(blocks=1).returncode == 1
    runs = experiment.manifest["runs"]
    assert len(runs) == 3
    assert all("was killed by SIGKILL during the load" in run["reason"] for run in runs)


@pytest.mark.exhaustive
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_no_agent_is_left_and_resume_goes_on(experiment: Experiment, how: signal.Signals) -> None:
    layer = agent(
        ELSEWHERE,
        ready=[*HELD, "true"],
        stop=["sh", "-c", STOP, "{plan}"],
        timeout=f"{SECONDS}s",
    )
    experiment.write_plan(top=TURNS, load=LOAD, layers=layer)
    experiment.hold_after(20)  # twice a turn: in the third turn of the second block
    process = experiment.start("--out", str(experiment.result))
    experiment.wait_until_held(process)
    started = family(process)
    before = len((experiment.folder / "stops").read_text().split())
    assert before == 10
    process.send_signal(how)
    process.communicate(timeout=SECONDS)
    stops = experiment.folder / "stops"
    wait_for(lambda: len(stops.read_text().split()) > before)
    wait_for(lambda: none_left(started))
    if how == signal.SIGINT:
        assert process.returncode == 130
    begun = experiment.manifest["runs"]
    assert [run["run"] for run in begun] == [1, 2, 3]
    experiment.release()
    done = experiment.resume()
    assert done.returncode == 0, done.stderr
    runs = experiment.manifest["runs"]
    assert runs[:3] == begun
    assert [run["run"] for run in runs] == [1, 2, 3, 4, 5, 6]
    assert all(run["valid"] for run in runs)
    assert not Path("/proc", (experiment.folder / "elsewhere").read_text().strip()).exists()


def test_an_agent_of_a_program_that_is_missing_is_refused(experiment: Experiment) -> None:
    layer = agent("", start="no-such-agent --all")
    experiment.write_plan(top=TURNS, load=LOAD, layers=layer)
    done = experiment.run("--dry-run")
    assert done.returncode == 2
    assert "start: found " in done.stderr
    assert "a program: no-such-agent is not installed" in done.stderr
    assert not experiment.result.exists()
