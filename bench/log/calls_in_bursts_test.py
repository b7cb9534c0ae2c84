# SPDX-License-Identifier: Apache-2.0
import os
import shutil
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from bench.log import calls_in_bursts
from bench.log.collected import Collected

# Its second thread is there when it answers.
PROGRAM = """
import threading
threading.Thread(target=threading.Event().wait, daemon=True).start()
while input():
    print(1, flush=True)
"""


def test_only_the_thread_that_logs_is_pinned() -> None:
    with ExitStack() as stack:
        turner = calls_in_bursts._pinned([sys.executable, "-c", PROGRAM], {}, stack)
        process = turner.process.pid
        others = {int(task.name) for task in Path(f"/proc/{process}/task").iterdir()} - {process}
        assert os.sched_getaffinity(process) == {calls_in_bursts.PROGRAM_CPU}
        assert [os.sched_getaffinity(other) for other in others] == [os.sched_getaffinity(0)]


def test_threads_that_lose_an_event_end_the_bench(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if len(os.sched_getaffinity(0)) < calls_in_bursts.THREADS:
        pytest.skip("there is one CPU only")
    two, ticks = calls_in_bursts._threads(tmp_path, 2)
    assert (two.note, ticks.note) == ("all of 120,000 events in the file", "")
    monkeypatch.setattr(Collected, "kept", lambda _, logged: logged - 1)
    with pytest.raises(SystemExit, match="60000 logged, 1 of them lost"):
        list(calls_in_bursts._threads(tmp_path, 2))


def test_a_peer_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls_in_bursts, "has_header", lambda _: True)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert [*calls_in_bursts.absent()] == ["lttng-ust"]
    monkeypatch.setattr(calls_in_bursts, "has_header", lambda _: False)
    assert [*calls_in_bursts.absent()] == ["spdlog", "lttng-ust"]
