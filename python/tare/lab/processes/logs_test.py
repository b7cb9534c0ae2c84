# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

from tare.lab.processes.logs import LONGEST, last_lines


def test_the_last_lines_that_are_not_blank_are_printable_and_short(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"one\n\n  two\x1b[31m\xff  \n \n" + 300 * b"x" + b"\n\n")
    assert last_lines(log, 2) == ["two\\x1b[31m\ufffd", LONGEST * "x"]
    assert last_lines(log, 9)[0] == "one"


def test_without_a_log_there_are_none(tmp_path: Path) -> None:
    assert last_lines(tmp_path / "none", 3) == []
    (tmp_path / "empty").touch()
    assert last_lines(tmp_path / "empty", 3) == []
