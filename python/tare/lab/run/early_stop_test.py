# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest

from tare.errors import TareError
from tare.lab.run.early_stop import failed_early, stop_if_failed_early
from tare.samples.manifest import Manifest, RunEntry


def entries(*failed: tuple[int, str], blocks: int = 3, where: str = "host") -> list[RunEntry]:
    """Runs of `blocks` blocks, in which the given runs (block, condition) fail."""
    places = [(block, name) for block in range(1, blocks + 1) for name in ("a", "a~again", "b")]
    return [
        RunEntry(
            run=run,
            block=block,
            environment=where,
            condition=name,
            valid=(block, name) not in failed,
            reason="no answer",
            logs=[f"logs/block={block}/{name}.log", f"logs/block={block}/{name}+load.log"],
        )
        for run, (block, name) in enumerate(places, start=1)
    ]


def stopping(runs: list[RunEntry]) -> list[list[int]]:
    return [[run.run for run in failed] for failed in failed_early(runs, "a")]


@pytest.mark.parametrize(
    ("failed", "runs"),
    [
        ([], []),
        ([(1, "a")], [[1]]),
        ([(2, "a"), (3, "a")], []),
        ([(1, "b")], []),
        ([(1, "b"), (2, "b")], [[3, 6]]),
        ([(1, "b"), (3, "b")], []),
        ([(2, "b"), (3, "b")], []),
        ([(1, "a~again"), (2, "a~again"), (1, "b"), (2, "b")], [[2, 5], [3, 6]]),
    ],
)
def test_the_baseline_has_one_block_and_all_others_have_two(
    failed: list[tuple[int, str]], runs: list[list[int]]
) -> None:
    assert stopping(entries(*failed)) == runs


def test_what_was_not_carried_out_yet_has_not_failed() -> None:
    assert stopping(entries((1, "b"), blocks=1)) == []
    assert stopping(entries((1, "b"), (2, "b"))[3:]) == []


def test_every_environment_counts_by_itself() -> None:
    host, netns = entries((1, "b"), where="host"), entries((1, "a"), (2, "b"), where="netns")
    assert stopping([*host, *netns]) == [[1]]


def manifest(runs: list[RunEntry], *environments: str) -> Manifest:
    declared = {"baseline": "a", "budget": 0.03, "control": "a~again"}
    return Manifest.model_validate(declared | {"runs": runs, "environments": [*environments]})


def message(tmp_path: Path, declared: Manifest) -> str:
    with pytest.raises(TareError) as caught:
        stop_if_failed_early(declared, {1, 2, 3, 4, 5, 6}, tmp_path)
    return str(caught.value)


def test_the_message_quotes_the_end_of_every_log_that_says_something(tmp_path: Path) -> None:
    declared = manifest(entries((1, "b"), (2, "b")), "host")
    service, load = (tmp_path / log for log in declared.runs[5].logs)
    begin = "'b' failed in the first two blocks: no answer; "
    end = (
        "; finished runs are kept; fix the cause outside of the plan and continue with:"
        f" tare run --resume {tmp_path}"
    )
    assert message(tmp_path, declared).startswith(f"{begin}{service} is empty{end}")
    service.parent.mkdir(parents=True)
    service.write_text("".join(f"line {number}\n" for number in range(1, 10)))
    load.touch()
    last = "line 5 | line 6 | line 7 | line 8 | line 9"
    assert message(tmp_path, declared).startswith(f"{begin}{service} ends with: {last}{end}")
    load.write_text("refused\n")
    both = f"{service} ends with: {last}; {load} ends with: refused"
    assert message(tmp_path, declared).startswith(f"{begin}{both}{end}")


def test_the_message_says_where_if_there_are_several_environments(tmp_path: Path) -> None:
    declared = manifest(entries((1, "a")), "host", "netns")
    assert message(tmp_path, declared).startswith("the baseline 'a' in host failed in the first bl")
    declared = manifest(entries((1, "a~again"), (2, "a~again")), "host", "netns")
    assert message(tmp_path, declared).startswith("the control in host failed in the first two bl")


def test_failures_of_before_stop_nothing(tmp_path: Path) -> None:
    stop_if_failed_early(manifest(entries((1, "b"), (2, "b")), "host"), {1, 4, 7}, tmp_path)


def test_what_fails_from_the_first_resumed_block_on_is_an_early_failure(tmp_path: Path) -> None:
    runs = entries((3, "a"), (3, "b"), (4, "b"), blocks=4)
    assert failed_early(runs, "a") == []
    found = [[run.run for run in failed] for failed in failed_early(runs, "a", first=3)]
    assert found == [[7], [9, 12]]
    declared = manifest(runs, "host")
    with pytest.raises(TareError, match=r"the baseline 'a' failed in block 3: no answer"):
        stop_if_failed_early(declared, {7, 8, 9}, tmp_path, first=3)


def test_without_a_valid_run_there_is_nothing_to_continue(tmp_path: Path) -> None:
    declared = manifest(entries((1, "a"), (1, "a~again"), (1, "b"), blocks=1), "host")
    assert message(tmp_path, declared).endswith(
        "nothing was measured; fix the cause and repeat the command"
    )
