# SPDX-License-Identifier: Apache-2.0
from tare.lab.doctor.commands import ask


def test_a_command_that_works_says_its_output() -> None:
    assert ask("sh", "-c", "echo one; echo two; echo noise >&2") == (True, "two")
    assert ask("sh", "-c", "echo one; echo two", line=0) == (True, "one")


def test_a_command_that_fails_says_its_complaint_or_its_exit_code() -> None:
    assert ask("sh", "-c", "echo out; echo why >&2; exit 3") == (False, "why")
    assert ask("sh", "-c", "exit 3") == (False, "exit code 3")
    assert ask("/nonexistent/program") == (False, "No such file or directory")


def test_a_command_that_hangs_is_left() -> None:
    assert ask("sleep", "60", limit_s=0.2) == (False, "no answer within 0.2 s")
