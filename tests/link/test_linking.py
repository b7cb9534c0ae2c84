# SPDX-License-Identifier: Apache-2.0
"""Forks, epoll sets and signal handlers that meet a connection while it is linked."""

from pathlib import Path

import pytest
from tests.link import linked
from tests.once import OUT, compiled

HERE = Path(__file__).parent
FORKS = 40
ROUNDS = 200


def program(name: str) -> str:
    options = ("-O1", "-w", "-pthread", "-o", OUT)
    return str(compiled(name, "cc", *options, HERE / f"{name}.c"))


@pytest.mark.parametrize("way", ["fork", "_Fork"])
def test_child_of_a_program_whose_threads_link_can_close_and_start_a_program(way: str) -> None:
    run = linked.run(program("forks"), way, str(FORKS))
    assert (run.code, run.errors) == (0, "")
    assert run.counts["links"] > FORKS
    assert run.counts["reset"] == 0
    # A connection that is linked in the moment of the fork stays TCP.
    assert run.share >= linked.SHARE


@pytest.mark.parametrize("way", ["set", "handler"])
def test_connection_works_that_something_uses_while_it_is_linked(way: str) -> None:
    run = linked.run(program("linking"), way, str(ROUNDS))
    assert (run.code, run.errors) == (0, "")
    assert run.counts["links"] > ROUNDS
    assert run.counts["reset"] == 0


def test_links_of_a_set_still_wake_it_after_another_one_could_not_be_made() -> None:
    run = linked.run(program("linking"), "stranger", str(ROUNDS))
    assert (run.code, run.errors) == (0, "")
    assert run.counts["refused"] > 0
    assert run.counts["reset"] == 0
