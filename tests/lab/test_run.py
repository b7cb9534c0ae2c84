# SPDX-License-Identifier: Apache-2.0
"""`tare run` from a plan to verdicts, on a real nginx."""

import json
import re
from collections.abc import Callable
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.lab.conftest import Experiment
from tests.rights import may_make_namespaces

from tare.lab.environments.host import Host
from tare.lab.environments.ports import free_port
from tare.plan import load


def test_a_null_experiment_from_plan_to_verdict(experiment: Experiment) -> None:
    experiment.write_plan()
    done = experiment.run("--json", report=True)
    assert done.returncode == 0, done.stderr
    (primary,) = [
        comparison
        for comparison in json.loads(done.stdout)["comparisons"]
        if comparison["metric"] == "p50"
    ]
    assert primary["verdict"] == "inconclusive"
    assert primary["runs"] == {"baseline": 2, "condition": 2}
    manifest = experiment.manifest
    assert manifest["design"] == "interleaved"
    assert manifest["finished"]
    assert [run["run"] for run in manifest["runs"]] == [1, 2, 3, 4, 5, 6]
    assert all(run["valid"] and run["errors"] == 0 for run in manifest["runs"])
    assert all(run["cpu"]["service_ns_per_request"] > 0 for run in manifest["runs"])
    order = [(run["block"], run["condition"]) for run in manifest["runs"]]
    assert order == [(p["block"], c) for p in manifest["order"] for c in p["conditions"]]
    assert not (experiment.result / "work").exists()
    assert (experiment.result / "report.html").exists()
    stored = json.loads((experiment.result / "verdicts.json").read_text())
    assert re.fullmatch(r"tare \S+ \(commit \S+\)", stored.pop("judged_by"))
    assert stored == json.loads(done.stdout)


def test_too_few_blocks_for_a_verdict_do_not_start(experiment: Experiment) -> None:
    experiment.write_plan()
    text = experiment.plan.read_text().replace("smoke = true\n", "")
    experiment.plan.write_text(text.replace("blocks = 2", "blocks = 8"))
    for words in ((), ("--dry-run",)):
        done = experiment.run("--blocks", "5", *words)
        assert done.returncode == 2
        assert done.stderr.startswith(
            f"tare: {experiment.plan}:3: blocks: found 5, expected at least 6: fewer blocks"
        )
        assert not experiment.result.exists()
    done = experiment.run("--dry-run", "--blocks", "5", "--smoke")
    assert done.returncode == 0
    assert "at least 6 blocks; this plan has 5; a smoke run" in done.stdout
    done = experiment.run("--dry-run")
    assert "a verdict needs at least 6 blocks; this plan has 8\n" in done.stdout


def test_a_smoke_run_fails_no_gate_and_says_so(experiment: Experiment) -> None:
    experiment.write_plan()
    done = experiment.run("--json", "--fail-on", "inconclusive,invalid", report=True)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "--fail-on: ignored, because this is a smoke run"
    assert experiment.manifest["smoke"] is True
    judged = json.loads(done.stdout)
    assert judged["smoke"] is True
    assert any(line.startswith("this is a smoke run") for line in judged["warnings"])
    assert "this is a smoke run" in (experiment.result / "report.md").read_text()


def test_samples_are_complete_and_slices_of_both_conditions_alternate(
    experiment: Experiment,
) -> None:
    experiment.write_plan()
    assert experiment.measure().returncode == 0
    slices = {}
    for run in experiment.manifest["runs"]:
        key = f"condition={run['condition']}/block={run['block']}/run={run['run']}"
        table = pq.read_table(experiment.result / "samples" / key / "samples.parquet",
                              partitioning=None)  # fmt: skip
        assert table.num_rows == run["requests"] > 0
        known = {name: set(table[name].to_pylist()) for name in ("experiment", "block", "run")}
        assert known["experiment"] == {experiment.manifest["experiment"]}
        assert (known["block"], known["run"]) == ({run["block"]}, {run["run"]})
        assert set(table["environment"].to_pylist()) == {"host"}
        slices[run["run"]] = set(table["slice"].to_pylist())
        machine = pq.read_table(experiment.result / "machine" / key / "machine.parquet",
                                partitioning=None)  # fmt: skip
        rows = machine.to_pylist()
        of_slices = {row["metric"] for row in rows if row["slice"] is not None}
        assert {"steal", "run_delay", "cpu_time"} <= of_slices
        end = run["started_ns"] + run["duration_ns"]
        for subject, metric in (("machine", "context_switches"), ("service", "memory")):
            times = [(row["start_ns"], row["start_ns"] + row["duration_ns"]) for row in rows
                     if row["slice"] is None
                     if (row["subject"], row["metric"]) == (subject, metric)]  # fmt: skip
            assert min(times)[0] <= run["started_ns"]
            assert max(times)[1] >= end
    first_block = slices[1] | slices[2] | slices[3]
    assert len(first_block) == len(slices[1]) + len(slices[2]) + len(slices[3])
    assert all(slices.values())


def test_blocks_one_after_the_other_on_a_fixed_port(experiment: Experiment) -> None:
    port = free_port("127.0.0.1")
    experiment.write_plan(service=f"port = {port}")
    done = experiment.measure()
    assert done.returncode == 0, done.stderr
    runs = experiment.manifest["runs"]
    assert experiment.manifest["design"] == "blocks"
    assert all(run["valid"] for run in runs)
    assert all(f":{port}/" in run["endpoint"] for run in runs)
    ends = [run["started_ns"] + run["duration_ns"] for run in runs]
    assert all(end < later["started_ns"] for end, later in zip(ends, runs[1:], strict=False))


def test_a_dry_run_prints_the_order_and_starts_nothing(experiment: Experiment) -> None:
    experiment.write_plan()
    done = experiment.run("--dry-run", "--blocks", "3", "--seed", "9", "--json")
    order = json.loads(done.stdout)
    assert (order["seed"], order["control"]) == (9, "one~again")
    assert [sorted(part["conditions"]) for part in order["order"]] == [
        ["one", "one~again", "two"]
    ] * 3
    done = experiment.run("--dry-run", "--blocks", "3", "--seed", "9")
    assert done.returncode == 0
    *blocks, control, least, _ = done.stdout.splitlines()[1:]
    names = [line.partition(": ")[2].split(", ") for line in blocks]
    assert [sorted(of_block) for of_block in names] == [["one", "the control", "two"]] * 3
    assert (
        control == "control: one runs a second time in every block and must not differ from itself"
    )
    assert least == (
        "a verdict needs at least 6 blocks; this plan has 3; a smoke run: its verdicts are not"
        " evidence"
    )
    assert (order["blocks_for_verdict"], order["blocks"], order["smoke"]) == (6, 3, True)
    assert "about " in done.stdout
    assert not experiment.result.exists()


def test_a_plan_without_a_control_says_so(experiment: Experiment) -> None:
    experiment.write_plan(top="control = false")
    done = experiment.run("--dry-run")
    assert "control" not in done.stdout
    assert experiment.measure(blocks=1).returncode == 0
    manifest = experiment.manifest
    assert manifest["control"] is None
    assert [run["condition"] for run in manifest["runs"]] == manifest["order"][0]["conditions"]
    assert sorted(manifest["order"][0]["conditions"]) == ["one", "two"]
    # Tests that run beside this one may be warned of, too.
    assert manifest["warnings"][0].startswith("the plan has no control")


def test_the_control_is_a_fresh_run_of_the_baseline_in_every_block(experiment: Experiment) -> None:
    experiment.write_plan(top='baseline = "two"', layers=f'{{ type = "wrap", command = {MARK} }}')
    done = experiment.measure()
    assert done.returncode == 0, done.stderr
    manifest = experiment.manifest
    assert manifest["control"] == "two~again"
    assert [condition["name"] for condition in manifest["conditions"]] == ["one", "two"]
    assert [run["block"] for run in experiment.runs("two~again")] == [1, 2]
    assert len({run["endpoint"] for run in manifest["runs"] if run["block"] == 1}) == 3
    assert len((experiment.folder / "marks").read_text().split()) == 4
    assert "the control" in done.stderr
    assert "~" not in done.stderr


# Counts the starts of what has it before it.
MARK = json.dumps(["sh", "-c", 'echo x >>"$0/marks"; exec "$@"', "{plan}"])


def test_blocks_and_seed_of_the_command_line_are_in_the_plan_as_run(
    experiment: Experiment,
) -> None:
    experiment.write_plan()
    assert experiment.run("--blocks", "1", "--seed", "77").returncode == 0
    stored = load(experiment.result / "plan.toml")
    assert (stored.blocks, stored.seed) == (1, 77)
    assert experiment.manifest["seed"] == 77


def test_a_run_uses_every_step_of_its_environment_in_order(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: dict[str, list[str]] = {}

    def watched(name: str) -> Callable[..., Any]:
        step = getattr(Host, name)

        def watch(self: Host, *given: Any, **named: Any) -> Any:
            of_run = steps.setdefault(self.name, [])
            if of_run[-1:] != [name]:
                of_run.append(name)
            if name == "copy_in":
                assert all((folder / "nginx.conf").is_file() for folder in given[0])
            if name == "copy_out":
                assert all((folder / "costs-hook.arrow").exists() for folder in given[0])
            return step(self, *given, **named)

        return watch

    for name in ("prepare", "copy_in", "start", "family", "copy_out", "stop"):
        monkeypatch.setattr(Host, name, watched(name))
    experiment.write_plan(layers='{ type = "hook" }')
    text = experiment.plan.read_text()
    experiment.plan.write_text(text.replace('"one"', '"one"\nlayers = [{ type = "hook" }]'))
    done = experiment.measure(blocks=1)
    assert done.returncode == 0, done.stderr
    assert steps == {
        f"1/host/{name}": ["prepare", "copy_in", "start", "family", "copy_out", "stop"]
        for name in ("one", "two", "one~again")
    }


@pytest.mark.parametrize("ready", ["{ tcp = true }", "{ log = '^up and \\w+$' }"])
def test_ready_by_tcp_or_by_a_line_of_the_log(experiment: Experiment, ready: str) -> None:
    says_so = (
        '{ type = "wrap", command = ["sh", "-c", "echo up and running; exec \\"$@\\"", "sh"] }'
    )
    experiment.write_plan(layers=says_so)
    text = experiment.plan.read_text().replace('{ http = "/", timeout = "60s" }', ready)
    text = text.replace('name = "one"', f'name = "one"\nlayers = [{says_so}]')
    experiment.plan.write_text(text)
    done = experiment.measure(blocks=1)
    assert done.returncode == 0, done.stderr
    assert [run["reason"] for run in experiment.manifest["runs"]] == [None] * 3


def test_a_service_in_its_own_network_namespace(experiment: Experiment) -> None:
    if not may_make_namespaces():
        pytest.skip("a network namespace needs root")
    experiment.write_plan(top='environments = ["host", "netns"]')
    done = experiment.measure(blocks=1)
    assert done.returncode == 0, done.stderr
    runs = experiment.manifest["runs"]
    assert all(run["valid"] for run in runs), runs
    hosts = {run["environment"]: run["endpoint"].split(":")[1] for run in runs}
    assert hosts["host"] == "//127.0.0.1"
    assert hosts["netns"].startswith("//10.213.")


@pytest.mark.parametrize("words", [(), ("--dry-run",)])
def test_an_environment_that_does_not_exist_is_refused(
    experiment: Experiment, words: tuple[str, ...]
) -> None:
    experiment.write_plan(top='environments = ["moon"]')
    done = experiment.run(*words)
    assert done.returncode == 2
    found = f'tare: {experiment.plan}:6: environments[1]: found "moon",'
    assert done.stderr.startswith(f"{found} expected 'host', 'netns', 'container',")
    assert not experiment.result.exists()
