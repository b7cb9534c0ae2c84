# SPDX-License-Identifier: Apache-2.0
"""A program sends or receives by way of memory that is taken away meanwhile."""

from pathlib import Path

import pytest
from tests.hook.hooked import hooked, plain, rules
from tests.hostile.conftest import Compile

OUT = rules("needle", scope="all", direction="out")
BLOCK = rules("occurs nowhere", scope="all", direction="out", action="block")


@pytest.mark.parametrize("text", [OUT, BLOCK, OUT + BLOCK], ids=["trace", "block", "both"])
@pytest.mark.parametrize("function", ["write", "writev", "sendmsg"])
def test_truncated_file_is_sent_as_without_the_hook(
    function: str, text: str, restricted: Compile, tmp_path: Path
) -> None:
    command: list[str | Path] = [restricted("sending"), function]
    expected = plain(command, tmp_path)
    assert expected.out == "1\n-1 1\n4096\n"
    seen = hooked(command, tmp_path, text)
    assert seen.behaviour == expected
    # All of the first call that could not be read any more is counted.
    [row] = [row for row in seen.stats["functions"] if row["function"] == function]
    assert text == BLOCK or row["bytes_unseen"] > 0


@pytest.mark.parametrize(
    ("how", "printed"),
    [
        ("readv-over", "64 A"),
        ("recvmsg-over", "64 A"),
        ("readv", "8"),
        ("recvmsg", "8"),
        ("recvmmsg", "1"),
        ("sendmsg", str(4 << 20)),
        ("locked", "8192"),
        ("truncated", "4096"),
    ],
)
def test_arrays_and_memory_that_go_end_no_program(
    how: str, printed: str, restricted: Compile, tmp_path: Path
) -> None:
    command: list[str | Path] = [restricted("receiving"), how]
    expected = plain(command, tmp_path)
    assert (expected.code, expected.out) == (0, f"{printed}\n")
    assert hooked(command, tmp_path, rules("needle", scope="all")).behaviour == expected


def test_blocked_bytes_do_not_leave_before_those_that_cannot_be_read(
    restricted: Compile, tmp_path: Path
) -> None:
    seen = hooked(
        [restricted("sending"), "write"], tmp_path, BLOCK.replace("occurs nowhere", "needle")
    )
    assert seen.behaviour.out.startswith("0\n")
    assert ("needle", 0) in seen.keywords("out")


def test_bytes_that_a_filter_hides_are_counted_and_a_block_rule_warns(
    restricted: Compile, tmp_path: Path
) -> None:
    command: list[str | Path] = [restricted("serving"), "events", "prctl"]
    expected = plain(command, tmp_path)
    seen = hooked(command, tmp_path, OUT + BLOCK)
    assert (seen.behaviour.code, seen.behaviour.out) == (expected.code, expected.out)
    assert seen.stats["not_seen"]["unblocked_sends"] == 3
    functions = {row["function"]: row for row in seen.stats["functions"]}
    assert functions["write"]["bytes_unseen"] == 27
    assert "3 calls sent bytes unsearched" in seen.behaviour.err
