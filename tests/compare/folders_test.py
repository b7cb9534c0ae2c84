# SPDX-License-Identifier: Apache-2.0
"""`tare compare OLD NEW`, and what a pipeline asks of it."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import in_process
from tests.in_process import Done
from tests.report.synthetic import Synthetic


def tare(*arguments: object, **variables: str) -> Done:
    return in_process.tare("compare", *arguments, **variables)


def answer(*arguments: object, code: int = 0, **variables: str) -> dict[str, Any]:
    done = tare(*arguments, "--json", **variables)
    assert done.returncode == code, done.stderr
    return dict(json.loads(done.stdout))


def primary(judged: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [
        (comparison["baseline"], comparison["condition"], comparison["verdict"])
        for comparison in judged["comparisons"]
        if comparison["role"] == "primary"
    ]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Before and after: the hook got much slower, plain by less than can be seen."""
    folder = tmp_path_factory.mktemp("results")
    made: dict[str, Any] = {"requests": 300, "invalid": (), "warnings": (), "blocks": 8}
    old = Synthetic(effects={"plain": 0, "hook": 0.06, "gone": 0}, **made).write(folder / "old")
    new = Synthetic(effects={"plain": 0, "hook": 0.5}, seed=8, **made).write(folder / "new")
    manifest = json.loads((new / "manifest.json").read_text())
    manifest["machine"]["kernel"] = "6.5"
    manifest["load"]["users"] = 2
    manifest["budget"] = 0.9
    (new / "manifest.json").write_text(json.dumps(manifest))
    return old, new


def runs_of(folder: Path, level: float, names: list[str]) -> Path:
    folder.mkdir()
    generator = np.random.default_rng(int(level))
    for name in names:
        times = level * generator.uniform(0.99, 1.01, 400)
        rows = "".join(f"{1_700_000_000 + i},{time}\n" for i, time in enumerate(times))
        (folder / name).write_text(f"start_time,response_time\n{rows}")
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Six files of requests each, the new ones 10 % slower."""
    folder = tmp_path_factory.mktemp("files")
    names = [f"run{number}.csv" for number in (10, 9, 1, 2, 3, 4)]
    return runs_of(folder / "before", 100, names), runs_of(folder / "after", 110, names)


def test_each_condition_stands_against_itself(results: tuple[Path, Path]) -> None:
    judged = answer(*results)
    plain, hook = primary(judged)
    assert plain[:2] == ("plain@old", "plain@new")
    assert hook == ("hook@old", "hook@new", "slower")
    hooked = next(
        comparison for comparison in judged["comparisons"] if comparison["condition"] == "hook@new"
    )
    assert hooked["effect"]["relative"] == pytest.approx(1.5 / 1.06 - 1, abs=0.1)
    # Unpaired runs and two primary comparisons; the old folder's budget.
    assert hooked["p_adjusted"] == pytest.approx(2 * hooked["p"])
    assert hooked["p"] == pytest.approx(2 / 12_870)
    assert hooked["budget"] == 0.03


def test_what_else_differs_is_named(results: tuple[Path, Path]) -> None:
    judged = answer(*results)
    warnings = judged["warnings"]
    assert "two experiments" in warnings[0]
    assert "not paired" in warnings[0]
    for line in (
        "another kernel: 6.1.0-18-amd64 (old), 6.5 (new)",
        "another load, users: 1 (old), 2 (new)",
        "another budget: 0.03 (old), 0.9 (new)",
        "only old has 'gone': no verdict for it",
    ):
        assert line in warnings
    # Each was disturbed by itself: nothing was left out of both alike.
    left_out = [line for line in judged["notes"] if "left out, because" in line]
    assert [line.partition(" % of")[0].rstrip("0123456789.") for line in left_out] == [
        f"{name}: host: '{name}@{side}': " for name in ("plain", "hook") for side in ("old", "new")
    ]


def test_what_does_not_differ_is_not_named(results: tuple[Path, Path], tmp_path: Path) -> None:
    again = shutil.copytree(results[0], tmp_path / "again")
    warnings = answer(results[0], again)["warnings"]
    assert not [line for line in warnings if line.startswith(("another", "only"))]


def test_one_condition_on_request(results: tuple[Path, Path]) -> None:
    assert primary(answer(*results, "--condition", "hook")) == [("hook@old", "hook@new", "slower")]
    judged = answer(*results, "--condition", "hook", "--budget", "60%", "--primary", "p95")
    assert primary(judged) == [("hook@old", "hook@new", "unchanged")]
    assert judged["comparisons"][0]["metric"] == "p95"


def test_folders_of_files_are_old_and_new(folders: tuple[Path, Path]) -> None:
    assert primary(answer(*folders)) == [("old", "new", "slower")]
    (named, *_) = answer(
        "--baseline", f"a={folders[0]}", f"b={folders[1]}", "--paired", "--warmup", "20"
    )["comparisons"]
    assert (named["condition"], named["runs"]) == ("b", {"baseline": 6, "condition": 6})


def test_files_of_a_folder_stand_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    runs_of(tmp_path / "a", 100, [f"run{number}.csv" for number in (1, 2, 10)])
    (tmp_path / "a" / "run10.csv").write_text("no\n")
    (tmp_path / "a" / "run2.csv").write_text("no\n")
    (tmp_path / "a" / ".hidden").write_text("no\n")
    (tmp_path / "a" / "folder").mkdir()
    done = tare(tmp_path / "a", runs_of(tmp_path / "b", 100, ["run.csv"]))
    assert done.returncode == 2
    assert "run2.csv" in done.stderr


JTL = "timeStamp,elapsed,label,responseCode,success,bytes\n"
K6 = "metric_name,timestamp,metric_value,status\n"


@pytest.mark.parametrize(
    ("head", "row"),
    [
        (JTL, "17000000{second:02}000,{ms},home,200,true,99\n"),
        (K6, "http_req_duration,17000000{second:02},{ms},200\n"),
    ],
    ids=["JMeter", "k6"],
)
def test_two_files_have_a_verdict_that_says_what_is_missing(
    head: str, row: str, tmp_path: Path
) -> None:
    for name, level in (("before", 100), ("after", 110)):
        rows = (row.format(second=i, ms=level + i % 3) for i in range(60))
        (tmp_path / f"{name}.csv").write_text(head + "".join(rows))
    done = tare(tmp_path / "before.csv", tmp_path / "after.csv")
    assert done.returncode == 0, done.stderr
    assert re.search(r"inconclusive +p50 +\S+ ms -> +\S+ ms +\+9\.9 %", done.stdout)
    assert "cannot prove any change: 5 are needed, 4 more; so far" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("{old}", "{old}"), "is given twice"),
        (("{old}", "{before}"), "old is; give two result folders"),
        (("{old}", "{empty}/none"), "none: no such folder; give two result"),
        (("{old}", "{new}", "--condition", "no"), "no condition 'no'; it has plain, hook, gone"),
        (("{old}", "{new}", "--paired"), "--paired: for files only, and "),
        (("{old}", "{new}", "--method", "published-t"), "--method: does not apply to two"),
        (("{old}", "--condition", "hook"), "--condition: needs two result folders"),
        (("{before}", "{after}", "--condition", "x"), "--condition: applies to two result folders"),
        (("{before}", "{after}", "{old}"), "no --baseline: give OLD NEW"),
        (("{before}",), "before/manifest.json: no such file"),
        (("{empty}", "{after}"), ": contains no file; give a folder"),
        (("--baseline", "a={old}", "b={after}"), "is a result folder of tare run"),
        (("{before}", "{after}", "--json", "--markdown"), "choose one"),
        (("{before}", "{after}", "--fail-on", "slow"), "--fail-on: found 'slow', expected one of"),
        (("{before}", "{after}", "--fail-on", "slower,"), "--fail-on: found ''"),
        (("{before}", "{after}", "--label", "a=b"), "--label a=b: needs --history"),
        (("{before}", "{after}", "--label", "a", "--history", "{empty}"), "expected NAME=VALUE"),
        (("{before}", "{after}", "--history", "/proc/none"), "choose another folder"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(
    arguments: tuple[str, ...],
    message: str,
    results: tuple[Path, Path],
    folders: tuple[Path, Path],
    tmp_path: Path,
) -> None:
    places = {
        **dict(zip(("old", "new"), results, strict=True)),
        **dict(zip(("before", "after"), folders, strict=True)),
        "empty": tmp_path,
    }
    done = tare(*(argument.format(**places) for argument in arguments))
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["exists", "iterdir"])
def test_a_folder_without_the_right_to_it(
    name: str, folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    # Root may read everything, so what the kernel tells others is put in its place.
    monkeypatch.setattr(Path, name, refuse)
    done = tare(*folders)
    assert done.returncode == 2
    assert "Permission denied; give a readable path" in done.stderr
    assert done.stderr.count("\n") == 1


def test_nothing_in_common_is_said(tmp_path: Path) -> None:
    made: dict[str, Any] = {"requests": 50, "invalid": (), "blocks": 1}
    first = Synthetic(effects={"a": 0, "b": 0}, **made).write(tmp_path / "one")
    second = Synthetic(effects={"c": 0, "d": 0}, **made).write(tmp_path / "two")
    done = tare(first, second)
    assert done.returncode == 2
    assert "no common condition to compare" in done.stderr


def test_a_gate_ends_with_3_after_everything_was_printed(folders: tuple[Path, Path]) -> None:
    done = tare(*folders, "--fail-on", "invalid,inconclusive", "--fail-on", "slower")
    assert done.returncode == 3
    assert "slower" in done.stdout
    assert done.stderr == "tare: --fail-on slower: 'new' against 'old' is slower, p50 +10.0 %\n"
    assert tare(*folders, "--fail-on", "invalid,inconclusive").returncode == 0
    assert tare(*reversed(folders), "--fail-on", "slower").returncode == 0
    assert answer(*folders, "--fail-on", "slower", code=3)["comparisons"]


def test_a_smoke_run_fails_no_gate_and_says_so(results: tuple[Path, Path], tmp_path: Path) -> None:
    old, new = results
    tried = tmp_path / "tried"
    shutil.copytree(new, tried)
    manifest = json.loads((tried / "manifest.json").read_text()) | {"budget": 0.03}
    said = "--fail-on: ignored, because this is a smoke run\n"
    for smoke, code in ((False, 3), (True, 0)):
        (tried / "manifest.json").write_text(json.dumps(manifest | {"smoke": smoke}))
        for folders in ((tried,), (old, tried)):
            done = tare(*folders, "--json", "--fail-on", "slower")
            assert done.returncode == code, done.stderr
            assert (done.stderr == said) == smoke
            assert json.loads(done.stdout)["smoke"] is smoke


def test_markdown_for_a_pull_request(folders: tuple[Path, Path]) -> None:
    done = tare(*folders, "--markdown", "--fail-on", "slower")
    assert done.returncode == 3
    assert done.stdout.startswith("### Tare: 1 slower\n\n| verdict |")
    assert "| **slower** | `new` | `old` | p50 |" in done.stdout
    assert "<details>" in done.stdout


def test_a_history_grows_and_is_told(folders: tuple[Path, Path], tmp_path: Path) -> None:
    history = tmp_path / "history"
    more = ("--history", history, "--label", "branch=main")
    first = answer(*folders, *more, GITHUB_SHA="abc")
    assert first["history"]["comparisons"][0]["earlier"] == 0
    done = tare(*folders, *more, "--label", "commit=def", "--fail-on", "slower", GITHUB_SHA="abc")
    assert done.returncode == 3
    assert "history of 'new' against 'old': 1 earlier result (slower 1)" in done.stdout
    lines = [json.loads(line) for line in (history / "history.jsonl").read_text().splitlines()]
    assert [line["labels"] for line in lines] == [
        {"commit": "abc", "branch": "main"},
        {"commit": "def", "branch": "main"},
    ]
    assert {line["verdict"] for line in lines} == {"slower"}
    assert all(line["time"] for line in lines)
    done = tare(*folders, *more, "--markdown")
    assert "- history of 'new' against 'old': 2 earlier results (slower 2)" in done.stdout
