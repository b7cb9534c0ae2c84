# SPDX-License-Identifier: Apache-2.0
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tare.lab.doctor import Found, Probe, examine


def probe(look: Callable[[], Found], limit_s: float = 10) -> Probe:
    return Probe("group", look.__name__, look, "nothing", "nowhere", limit_s)


@pytest.fixture(autouse=True)
def temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def alive(pid: int) -> bool:
    """A zombie that nobody has waited for yet is over."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:  # it may end between the opening of the file and its reading
        return False
    return state != "Z"


def test_findings_come_in_the_order_of_the_probes_and_the_folder_goes(
    temporary_files: Path,
) -> None:
    def slow() -> Found:
        time.sleep(0.3)
        return Found("yes", str(Path.cwd()), {"pid": os.getpid()})

    def quick() -> Found:
        Path("left").write_text("behind")
        return Found("partly", "at once")

    findings = list(examine([probe(slow), probe(quick)]))
    assert [finding.name for finding in findings] == ["slow", "quick"]
    assert [finding.state for finding in findings] == ["yes", "partly"]
    assert findings[0].found.startswith(str(temporary_files))
    assert findings[0].details["pid"] != os.getpid()
    assert list(temporary_files.iterdir()) == []


def test_a_signal_while_the_folder_is_made_leaves_nothing_behind(
    temporary_files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = tempfile.mkdtemp

    def make_and_raise(prefix: str) -> str:
        folder = make(prefix=prefix)
        signal.raise_signal(signal.SIGTERM)
        return folder

    def stop(*_: object) -> None:
        raise InterruptedError

    monkeypatch.setattr("tempfile.mkdtemp", make_and_raise)
    before = signal.signal(signal.SIGTERM, stop)
    try:
        with pytest.raises(InterruptedError):
            list(examine([]))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, []) == set()
    assert list(temporary_files.iterdir()) == []


def test_a_probe_that_hangs_is_ended_with_what_it_started(temporary_files: Path) -> None:
    note = temporary_files / "pids"

    def hangs() -> Found:
        child = subprocess.Popen(["sleep", "60"])
        note.write_text(f"{os.getpid()} {child.pid}")
        child.wait()
        return Found("yes", "never")

    (finding,) = examine([probe(hangs, limit_s=3)])
    assert (finding.state, finding.found) == ("no", "no answer within 3 s")
    while any(alive(int(pid)) for pid in note.read_text().split()):
        time.sleep(0.05)


def test_a_probe_that_fails_or_dies_is_an_answer() -> None:
    def fails() -> Found:
        raise RuntimeError("odd machine")

    def dies() -> Found:
        os._exit(3)

    failed, died = examine([probe(fails), probe(dies)])
    assert (failed.state, failed.found) == ("no", "the probe failed with RuntimeError: odd machine")
    assert (died.state, died.found) == ("no", "the probe crashed")


def test_an_answer_longer_than_a_pipe_arrives_whole() -> None:
    def talks() -> Found:
        return Found("yes", "x" * 300_000)

    (finding,) = examine([probe(talks)])
    assert len(finding.found) == 300_000


def test_giving_up_early_ends_the_probes(temporary_files: Path) -> None:
    def first() -> Found:
        return Found("yes", str(os.getpid()))

    def second() -> Found:
        (temporary_files / "pid").write_text(str(os.getpid()))
        time.sleep(60)
        return Found("yes", "never")

    findings = examine([probe(first), probe(second)])
    next(findings)
    pid = temporary_files / "pid"
    while not (pid.exists() and pid.read_text()):
        time.sleep(0.01)
    findings.close()  # type: ignore[attr-defined]
    assert not alive(int(pid.read_text()))
