# SPDX-License-Identifier: Apache-2.0
"""kill -9 at random moments: what was finished is whole, the rest can be done, nobody stays.

Of `tare run`: no process of it lives on, finished runs keep every byte, `--resume` does the
rest. Of `tare-hook` and then `tare-load` on one nginx: no request fails when the hook's command
dies, and of samples and events all but the last moment can be read.
"""

import json
import os
import random
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.results import renew
from tests.hook_command.service import HOOK, Nginx, rules
from tests.lab.conftest import Experiment, family, none_left
from tests.lab.test_interruption import LOAD, contents
from tests.load.conftest import TARE_LOAD, rows_of_a_part
from tests.waiting import wait_for

BLOCKS = 3
RUNS = 3 * BLOCKS  # one, two and the control
LATEST_NS = 500_000_000
"""How long before its kill the last sample of tare-load may lie: batches of 100 ms, and a
machine that may be busy."""


def run(tries: int) -> None:
    """Kills each so many times and renews the section; raises AssertionError at a loss."""
    chance = random.Random(1)
    experiments, services, latest_ms = Counter[str](), Counter[str](), 0
    length = _length()
    for _ in range(tries):
        with TemporaryDirectory() as folder:
            experiments.update(_kill_run(Path(folder), chance.uniform(0.1, length)))
        print("tare run", dict(experiments), flush=True)
    for _ in range(tries):
        with TemporaryDirectory() as folder:
            counts, late_ms = _kill_hook_and_load(Path(folder), chance)
        services.update(counts)
        latest_ms = max(latest_ms, late_ms)
        print("tare hook and load", dict(services), flush=True)
    lines = [
        f"`tare run`, killed {tries} times within {length:.1f} s of {BLOCKS} blocks:"
        f" {experiments['before']} times before its first manifest and"
        f" {experiments['resumed']} times resumed to {RUNS} valid runs;"
        f" {experiments['kept']} finished runs kept byte by byte, 0 lost;"
        f" {experiments['processes']} of its processes had to end, 0 stayed.",
        "",
        f"`tare-hook`, then `tare-load`, killed {tries} times under load:"
        f" {services['requests']:,} requests, {services['failed']} failed,"
        f" {services['after']:,} of them after the death of `tare-hook`;"
        f" {services['events']:,} events, all but the last line of a file whole."
        f" The last sample was at most {latest_ms} ms older than the kill.",
    ]
    renew("kills", "kill -9", f"python -m tests.soak kills --kills {tries}", "\n".join(lines))


def _length() -> float:
    """Seconds that the experiment takes when it is left alone."""
    with TemporaryDirectory() as folder:
        experiment = Experiment(Path(folder))
        experiment.write_plan(load=LOAD)
        began = time.monotonic()
        done = experiment.run("--blocks", str(BLOCKS))
        assert done.returncode == 0, done.stderr
        return time.monotonic() - began


def _kill_run(folder: Path, after_s: float) -> dict[str, int]:
    experiment = Experiment(folder)
    experiment.write_plan(load=LOAD)
    process = experiment.start("--out", str(experiment.result), "--blocks", str(BLOCKS))
    time.sleep(after_s)
    started = family(process)
    process.kill()
    process.communicate()
    wait_for(lambda: none_left(started))
    if not (experiment.result / "manifest.json").exists():
        return {"before": 1, "processes": len(started)}
    finished, kept = experiment.manifest["runs"], contents(experiment.result)
    again = experiment.start("--resume", str(experiment.result))
    _, errors = again.communicate(timeout=90)
    assert again.returncode == 0, errors
    done = experiment.manifest["runs"]
    assert done[: len(finished)] == finished
    assert [record["run"] for record in done] == list(range(1, RUNS + 1))
    assert all(record["valid"] for record in done), done
    after = contents(experiment.result)
    for record in finished:
        place = f"condition={record['condition']}/block={record['block']}/run={record['run']}"
        name = f"samples/{place}/samples.parquet"
        assert after[name] == kept[name]
    return {"resumed": 1, "kept": len(finished), "processes": len(started)}


def _kill_hook_and_load(folder: Path, chance: random.Random) -> tuple[dict[str, int], int]:
    """Returns what was counted, and how old the last sample was, in ms."""
    nginx = Nginx(folder)
    (folder / "rules.toml").write_text(rules("127.0.0.1"))
    samples, events = folder / "samples.arrow", folder / "events.jsonl"
    options = ["--rules", str(folder / "rules.toml"), "--events", str(events)]
    hook = subprocess.Popen([HOOK, *options, "--", *nginx.command])
    try:
        nginx.wait()
        command = [TARE_LOAD, "http", f"http://127.0.0.1:{nginx.port}/", "--warmup", "0s"]
        command += ["--duration", "60s", "--json", "--out", str(samples)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as load:
            time.sleep(chance.uniform(0.2, 1))
            hook.kill()
            hook.wait()
            hook_died = time.time_ns()
            time.sleep(chance.uniform(0.2, 1))
            nginx.wait()
            load_died = time.time_ns()
            load.kill()
    finally:
        hook.kill()
        os.kill(int((folder / "nginx.pid").read_text()), signal.SIGTERM)
    found = rows_of_a_part(samples)
    assert [row["seq"] for row in found] == list(range(len(found)))
    latest = load_died - found[-1]["start_ns"]
    assert latest < LATEST_NS
    whole = events.read_text().rpartition("\n")[0].splitlines()
    for line in whole:
        json.loads(line)
    failed = sum(not row["ok"] for row in found)
    assert failed == 0
    counts = {
        "requests": len(found),
        "failed": failed,
        "after": sum(row["start_ns"] > hook_died for row in found),
        "events": len(whole),
    }
    return counts, latest // 1_000_000
