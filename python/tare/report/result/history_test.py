# SPDX-License-Identifier: Apache-2.0
import fcntl
import json
import os
import resource
import signal
import time
import tracemalloc
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from tare.errors import InputError
from tare.report.result.history import NAME, check, remember
from tare.verdict import Comparison, Judgement


def judgement(relative: float | None = 0.02, verdict: Any = "unchanged") -> Judgement:
    known: dict[str, Any] = {
        "environment": "",
        "baseline": "old",
        "condition": "new",
        "span": "request",
        "budget": 0.03,
        "runs_baseline": 8,
        "runs_condition": 8,
        "reason": "because",
        "verdict": verdict,
        "relative": relative,
    }
    return Judgement(
        (
            Comparison(metric="p50", role="primary", **known),
            Comparison(metric="p99", role="exploratory", **known),
        )
    )


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / NAME).read_text().splitlines()]


def test_only_what_decides_is_remembered_with_its_labels(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "history"
    standing = remember(folder, judgement(), {"commit": "abc"})
    (line,) = lines(folder)
    assert (line["metric"], line["verdict"], line["labels"]) == (
        "p50",
        "unchanged",
        {"commit": "abc"},
    )
    assert line["effect"]["relative"] == 0.02
    assert "this is the first" in standing.lines()[0]


def test_where_the_present_result_stands(tmp_path: Path) -> None:
    for place in range(9):
        remember(tmp_path, judgement(0.01 * place), {})
    remember(tmp_path, judgement(None, "invalid"), {})
    standing = remember(tmp_path, judgement(0.045, "slower"), {})
    (place,) = standing.to_json()["comparisons"]
    assert (place["earlier"], place["verdicts"]) == (10, {"unchanged": 9, "invalid": 1})
    assert (place["median"], place["below"]) == (0.04, 5)
    assert place["trend"]["slope"] == pytest.approx(0.01, rel=0.1)
    (line,) = standing.lines()
    assert "10 earlier results (unchanged 9, invalid 1)" in line
    assert "now +4.5 %, above 5 of 9" in line
    assert "rising by about" in line


def test_other_conditions_are_another_series(tmp_path: Path) -> None:
    remember(tmp_path, judgement(), {})
    (entry,) = remember(tmp_path, judgement(), {}).entries
    assert entry.verdicts == {"unchanged": 1}
    other = Judgement((Comparison(**{**vars(judgement().comparisons[0]), "condition": "x"}),))
    (entry,) = remember(tmp_path, other, {}).entries
    assert entry.verdicts == {}


def test_bad_and_old_lines_are_counted_and_kept(tmp_path: Path) -> None:
    remember(tmp_path, judgement(), {})
    (line,) = lines(tmp_path)
    bad = [
        "what is this",
        "[]",
        "[" * 100_000,
        json.dumps(line | {"format": 0}),
        json.dumps(line | {"effect": {"relative": "much"}}),
        json.dumps(line | {"effect": {"relative": float("nan")}}),
        json.dumps(line | {"effect": {"relative": 10**400}}),
        json.dumps(line | {"span": []}),
        "\x00\xff",
    ]
    with (tmp_path / NAME).open("a", encoding="latin-1") as file:
        file.write("".join(f"{text}\n" for text in bad) + "\n")
        file.write('{"format": 1, "cut sho')
    standing = remember(tmp_path, judgement(), {})
    assert standing.unreadable == len(bad) + 1
    assert standing.entries[0].verdicts == {"unchanged": 1}
    assert "10 lines not understood" in standing.lines()[1]
    # What was cut short has not swallowed the line after it.
    assert remember(tmp_path, judgement(), {}).entries[0].verdicts == {"unchanged": 2}


def _remember_once(folder: Path) -> None:
    remember(folder, judgement(), {})


def _somebody_waits_for(path: Path) -> bool:
    inode = f":{path.stat().st_ino} "
    waiting = (line for line in Path("/proc/locks").read_text().splitlines() if "->" in line)
    return any(inode in line for line in waiting)


def test_two_at_once_wait_for_each_other(tmp_path: Path) -> None:
    remember(tmp_path, judgement(), {})
    processes = [
        get_context("spawn").Process(target=_remember_once, args=(tmp_path,)) for _ in range(2)
    ]
    with (tmp_path / NAME).open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        for process in processes:
            process.start()
        while not _somebody_waits_for(tmp_path / NAME):
            time.sleep(0.02)
        file.write('{"cut sho')
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    (entry,) = remember(tmp_path, judgement(), {}).entries
    assert entry.verdicts == {"unchanged": 3}


def _in_a_child(work: Callable[[], None]) -> int:
    """The exit code of a forked child that does `work`; 1 when it raises."""
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 1
    try:
        work()
        code = 0
    finally:
        os._exit(code)


def test_where_there_is_no_room_the_file_stays_as_it_was(tmp_path: Path) -> None:
    remember(tmp_path, judgement(), {})
    before = (tmp_path / NAME).read_bytes()

    def fill() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 100, len(before) + 100))
        with pytest.raises(OSError, match="File too large") as caught:
            remember(tmp_path, judgement(), {})
        assert caught.value.filename == str(tmp_path / NAME)

    assert _in_a_child(fill) == 0
    assert (tmp_path / NAME).read_bytes() == before


def test_a_folder_that_cannot_be_made_is_told_before_anything(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file.*choose another folder with --history"):
        check(tmp_path / "file")
    (tmp_path / "odd" / NAME).mkdir(parents=True)
    with pytest.raises(InputError, match="not an ordinary file"):
        check(tmp_path / "odd")


@pytest.mark.parametrize("there", [True, False])
def test_a_link_of_another_user_is_not_followed(tmp_path: Path, there: bool) -> None:
    target = tmp_path / "secret"
    if there:
        target.write_text("secret")
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / NAME).symlink_to(target)
    for use in (check, lambda folder: remember(folder, judgement(), {})):
        with pytest.raises(InputError, match=r"history\.jsonl: is a symbolic link"):
            use(tmp_path / "shared")
    assert (target.read_text() if there else target.exists()) == ("secret" if there else False)


def test_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / NAME)
    with pytest.raises(InputError, match="not an ordinary file"):
        check(tmp_path)


def test_a_line_without_end_is_not_held_in_memory(tmp_path: Path) -> None:
    remember(tmp_path, judgement(), {})
    os.truncate(tmp_path / NAME, 64 << 20)
    tracemalloc.start()
    try:
        standing = remember(tmp_path, judgement(), {})
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
    assert (standing.unreadable, standing.entries[0].verdicts) == (1, {"unchanged": 1})
    assert remember(tmp_path, judgement(), {}).entries[0].verdicts == {"unchanged": 2}
