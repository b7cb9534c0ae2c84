# SPDX-License-Identifier: Apache-2.0
"""tare calibrate on a real service: interrupted, finished, kept for later verdicts."""

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.in_process import tare
from tests.report.page import Page
from tests.waiting import SECONDS, wait_for

from tare.lab.result.file_ownership import require_trusted
from tare.lab.run.calibration import Extent, calibrations, service_text
from tare.native import native
from tare.plan import load
from tare.samples.describe.limits import detection_limits

ROOT = Path(__file__).parents[2]
DELAY_NS = 20_000_000
"""So long that no neighbour hides it, whatever else the machine does."""
PLAN = """\
name = "short"
budget = "3%"
blocks = 6
[service]
command = "{busy} {{address}} {{port}}"
[load]
warmup = "20ms"
duration = "400ms"
[calibration]
variable = "{variable}"
delays = ["20ms"]
repetitions = 1
[[conditions]]
name = "one"
[[conditions]]
name = "two"
"""


@dataclass
class Calibration:
    """A plan, and the command that calibrates by it."""

    folder: Path
    plan: Path
    result: Path
    state: Path

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "tare", "calibrate", str(self.plan), *arguments]
        environment = os.environ | {"XDG_STATE_HOME": str(self.state), "NO_COLOR": "1"}
        return subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str) -> tuple[int, str, str]:
        process = self.start(*arguments)
        out, errors = process.communicate(timeout=SECONDS)
        return process.returncode, out, errors

    @property
    def manifest(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.result / "request/manifest.json").read_text())
        return found


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("busy") / "busy"
    source, library = ROOT / "services/busy/busy.c", native("lib", "libtare_log.a")
    words = ["-O2", "-I", native("include", ""), "-o", str(program), str(source), library]
    subprocess.run(["cc", *words], check=True)
    return program


def calibration(folder: Path, busy: Path, variable: str) -> Calibration:
    plan = folder / "plan.toml"
    plan.write_text(PLAN.format(busy=busy, variable=variable))
    return Calibration(folder, plan, folder / "result", folder / "state")


@dataclass
class Finished:
    """What was interrupted, and then finished."""

    of: Calibration
    interruption: str
    kept: list[dict[str, Any]]
    printed: str

    @property
    def answer(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.of.result / "calibration.json").read_text())
        return found

    def detection(self, statistic: str) -> dict[str, Any]:
        detections = self.answer["requests"]["request"]["detections"]
        found: dict[str, Any] = next(
            detection for detection in detections if detection["statistic"] == statistic
        )
        return found


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, busy: Path) -> Finished:
    interrupted = calibration(tmp_path_factory.mktemp("calibration"), busy, "BUSY_WAIT_US")
    process = interrupted.start("--out", str(interrupted.result))
    try:

        def has_a_run() -> bool:
            assert process.poll() is None, process.communicate()
            return (interrupted.result / "request/samples").is_dir() and bool(
                interrupted.manifest["runs"]
            )

        wait_for(has_a_run, "the first run")
        os.killpg(process.pid, signal.SIGINT)  # what a terminal does
        _, errors = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
    assert process.returncode == 130, errors
    kept = interrupted.manifest["runs"]
    # It goes on as it was begun, whatever the plan asks for by now.
    asked = {"blocks = 6": "blocks = 9", '"20ms"]': '"1ms"]', "repetitions = 1": "repetitions = 4"}
    for begun, now in asked.items():
        interrupted.plan.write_text(interrupted.plan.read_text().replace(begun, now))
    code, out, more = interrupted.run("--resume", str(interrupted.result))
    assert code == 0, more
    return Finished(interrupted, errors, kept, out)


def test_ctrl_c_says_how_to_go_on_and_nothing_is_measured_twice(finished: Finished) -> None:
    last = finished.interruption.splitlines()[-1]
    assert last.startswith("tare: interrupted; ")
    assert last.endswith(f"--resume {finished.of.result}")
    runs = finished.of.manifest["runs"]
    assert 0 < len(finished.kept) < len(runs) == 6 * 3
    assert runs[: len(finished.kept)] == finished.kept


@pytest.mark.parametrize("other", [("blocks", "9"), ("repetitions", "2"), ("delays", "0,1ms")])
def test_what_was_begun_otherwise_is_not_resumed(
    finished: Finished, other: tuple[str, str]
) -> None:
    name, value = other
    code, _, errors = finished.of.run("--resume", str(finished.of.result), f"--{name}", value)
    assert code == 2
    assert f"began with other {name}; remove --{name}" in errors


def test_a_large_delay_is_detected_by_what_looks_at_the_bulk(finished: Finished) -> None:
    for statistic in ("p50", "mean", "ks"):
        found = finished.detection(statistic)
        assert found["limit_ns"] == DELAY_NS, found
        assert found["steps"][0]["delay_ns"] == 0
    # Of single pairs those without a delay differ, too, on a machine that does other things.
    for statistic in ("ks-pair", "ad-pair"):
        assert finished.detection(statistic)["steps"][1]["detected"] == 6
    steps = finished.detection("p50")["steps"]
    assert [step["repetitions"] for step in steps] == [1, 1]
    assert steps[1]["value"]["mean"] >= DELAY_NS / 2


def test_the_limits_hold_for_a_later_plan_of_the_service(
    finished: Finished, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(finished.of.state))
    machine = finished.of.manifest["machine"]["machine"]
    found, warnings = detection_limits(machine, service_text(load(finished.of.plan)))
    assert warnings == ()
    by_statistic = {limit.statistic: limit for limit in found}
    assert by_statistic["p50"].undetected_ns == DELAY_NS
    # The delay 0 is detected now and then, by chance.
    shares = by_statistic["p50"].shares
    assert set(shares) == {"0", str(DELAY_NS)}
    assert shares[str(DELAY_NS)] == 1.0
    assert set(by_statistic) <= {"p50", "p95", "p99", "mean", "ks", "ad"}


def test_a_later_run_of_the_service_carries_its_limits(finished: Finished, tmp_path: Path) -> None:
    later = tmp_path / "later"
    options = ["--smoke", "--blocks", "1", "--out", str(later), "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "tare", "run", str(finished.of.plan), *options],
        env=os.environ | {"XDG_STATE_HOME": str(finished.of.state)},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    limits = json.loads((later / "manifest.json").read_text())["limits"]
    assert {limit["statistic"]: limit["undetected_ns"] for limit in limits}["p50"] == DELAY_NS
    primary = json.loads(done.stdout)["comparisons"][0]
    assert (primary["metric"], primary["threshold"]) == ("p50", 0.99)


def test_the_page_has_every_number_and_is_whole(finished: Finished) -> None:
    result = finished.of.result
    page = Page((result / "report.html").read_text(encoding="utf-8"))
    text = " ".join(page.text)
    assert "20.0\u00a0ms" in " ".join(page.first_screen)
    assert "1 of 1 (3–100 %)" in text
    drawings = [attributes for tag, attributes in page.tags if tag == "svg"]
    labels = [str(attributes.get("aria-label")) for attributes in drawings]
    assert any(
        "AD between runs" in label and "100\u00a0% at 20.0\u00a0ms" in label for label in labels
    )
    assert any(label.startswith("Single pairs of runs: Kolmogorov") for label in labels)


def test_a_person_is_told_in_a_table(finished: Finished) -> None:
    out = finished.printed
    assert re.search(r"p50 +from 20.0 ms +1 of 1 \(3–100 %\)", out), out
    assert f"report: {finished.of.result}/report.html" in out
    assert f"stored for later verdicts: {finished.of.state}/tare/calibration.json" in out


def test_what_cannot_be_kept_is_told_after_everything_was_printed(finished: Finished) -> None:
    blocked = finished.of.folder / "blocked"
    blocked.write_text("no folder")
    other = Calibration(finished.of.folder, finished.of.plan, finished.of.result, blocked)
    code, out, errors = other.run("--resume", str(finished.of.result), "--json")
    assert code == 1
    assert json.loads(out) == finished.answer
    assert "not stored for later verdicts" in errors.splitlines()[-1]


@pytest.mark.exhaustive
def test_a_service_that_ignores_the_delay_has_no_limits(tmp_path: Path, busy: Path) -> None:
    attempt = calibration(tmp_path, busy, "SOMETHING_ELSE")
    code, out, errors = attempt.run("--out", str(attempt.result))
    assert (code, out) == (1, "")
    last = errors.splitlines()[-1]
    assert last.startswith("tare: the service does not follow the delay: 20.0 ms more changed")
    assert not attempt.state.exists()
    assert len(attempt.manifest["runs"]) == 6 * 3


def test_a_service_that_never_starts_is_told_with_its_last_words(tmp_path: Path) -> None:
    program = tmp_path / "broken"
    program.write_text("#!/bin/sh\necho no such jar >&2\nexit 1\n")
    program.chmod(0o755)
    attempt = calibration(tmp_path, program, "BUSY_WAIT_US")
    code, out, errors = attempt.run("--out", str(attempt.result))
    assert (code, out) == (1, "")
    assert errors.splitlines()[-1].startswith(
        "tare: the baseline '0us' failed in the first block: exited with code 1 before it was"
        f" ready: no such jar; see {attempt.result}/request/logs/block=1/0us.log; "
    )
    assert len(attempt.manifest["runs"]) == 3


@pytest.mark.parametrize("value", ["-1", "1000001", "soon", "", "1 "])
def test_the_service_refuses_any_other_value_in_one_line(busy: Path, value: str) -> None:
    done = subprocess.run(
        [str(busy), "127.0.0.1", "1"],
        env={"BUSY_WAIT_US": value},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == f"BUSY_WAIT_US={value}: expected whole microseconds from 0 to 1000000\n"


def test_the_plan_of_the_shop_has_large_and_small_payments() -> None:
    plan = load(ROOT / "plans/calibration.toml")
    large, small = calibrations(plan, Extent([0, 50_000], repetitions=1, blocks=6))
    for planned, times in ((large, "18"), (small, "0")):
        assert f"SHOP_LINPACK2_TIMES={times} SHOP_SLEEP_US=0" in planned.service


@pytest.mark.parametrize("name", ["calibrate-busy", "calibrate-hello"])
def test_the_plans_ask_as_the_thesis_did(name: str) -> None:
    plan = load(ROOT / f"plans/{name}.toml")
    assert plan.calibration is not None
    delays = [delay // 1000 for delay in plan.calibration.delays]
    assert delays == [0, 50, 100, 200, 300, 400, 500]
    assert plan.calibration.requests == {"short": 1_300_000, "long": 27_000_000}
    assert plan.calibration.variable == "BUSY_WAIT_US"


def test_folder_that_another_user_makes_after_the_check_gets_no_calibration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder such as /tmp."""
    if os.geteuid() != 0:
        pytest.skip("only root can give files to another user")
    plan, out, stranger = tmp_path / "plan.toml", tmp_path / "out", 65_533
    plan.write_text(PLAN.format(busy=native("bin", "tare-load"), variable="BUSY"))

    def checks(users: set[int], folder: Path) -> bool:
        is_there = require_trusted(users, folder)
        if not out.exists():
            out.mkdir()
            os.chown(out, stranger, -1)
        return is_there

    monkeypatch.setattr("tare.lab.result.file_ownership.require_trusted", checks)
    done = tare("calibrate", str(plan), "--out", str(out))
    assert f"{out}: belongs to user {stranger}" in done.stderr
    assert not list(out.iterdir())
