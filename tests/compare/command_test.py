# SPDX-License-Identifier: Apache-2.0
"""`tare compare` as a user types it, on files made here."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests import in_process
from tests.in_process import Done

RUNS = 6


def tare(*arguments: object) -> Done:
    return in_process.tare("compare", *arguments)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Six blocks of two runs by turns; blocks drift by 20 %, hook takes 10 % longer."""
    folder = tmp_path_factory.mktemp("runs")
    generator = np.random.default_rng(9)
    names: dict[str, list[str]] = {"plain": [], "hook": []}
    for block in range(RUNS):
        drift = generator.uniform(1.0, 1.2)
        for place, (condition, effect) in enumerate((("plain", 1.0), ("hook", 1.1))):
            start = 1_700_000_000 + 100 * block + 10 * place
            times = 2 * drift * effect * generator.gamma(20, 1 / 20, 1_500)
            rows = "".join(f"{start + i / 500},{time}\n" for i, time in enumerate(times))
            path = folder / f"{condition}{block}.csv"
            path.write_text(f"start_time,response_time\n{rows}")
            names[condition].append(str(path))
    return {condition: f"{condition}={','.join(paths)}" for condition, paths in names.items()}


def test_pairs_see_what_is_lost_between_unpaired_runs(files: dict[str, str]) -> None:
    answers = {}
    for paired in ((), ("--paired",)):
        done = tare("--baseline", files["plain"], files["hook"], "--json", *paired)
        assert done.returncode == 0, done.stderr
        (answers[paired], *_) = json.loads(done.stdout)["comparisons"]
    assert answers["--paired",]["verdict"] == "slower"
    assert answers["--paired",]["effect"]["relative"] == pytest.approx(0.1, abs=0.01)
    assert answers["--paired",]["p"] == 2 / 2**RUNS
    widths = [
        comparison["interval"]["high"] - comparison["interval"]["low"]
        for comparison in answers.values()
    ]
    assert widths[0] > 3 * widths[1]


def test_the_table_is_for_people(files: dict[str, str]) -> None:
    done = tare("--baseline", files["plain"], files["hook"], "--paired", "--primary", "mean")
    assert done.returncode == 0, done.stderr
    first = next(line for line in done.stdout.splitlines() if "slower" in line)
    assert "mean" in first
    assert "+10." in first or "+9." in first
    text = " ".join(done.stdout.split())
    assert "hook: The mean is" in text
    assert "higher" in text
    assert "over 6 blocks; the budget is 3.0 %" in text
    assert " p =" not in text


def test_a_wide_budget_makes_the_same_runs_unchanged(files: dict[str, str]) -> None:
    arguments = ("--baseline", files["plain"], files["hook"], "--paired", "--json")
    done = tare(*arguments, "--budget", "20%")
    (first, *_) = json.loads(done.stdout)["comparisons"]
    assert (first["verdict"], first["budget"]) == ("unchanged", 0.2)


def test_the_same_condition_twice_costs_no_certainty(files: dict[str, str]) -> None:
    third = files["hook"].replace("hook=", "other=")
    done = tare("--baseline", files["plain"], files["hook"], third, "--paired", "--json")
    first, second, *_ = json.loads(done.stdout)["comparisons"]
    assert [first["condition"], second["condition"]] == ["hook", "other"]
    assert first["p_adjusted"] == first["p"]


def test_the_published_test_of_unequal_sizes_is_students(files: dict[str, str]) -> None:
    plain = files["plain"]
    hook = files["hook"].split(",", maxsplit=1)[0]
    done = tare("--baseline", plain, hook, "--method", "published-t", "--json")
    result = json.loads(done.stdout)
    published = result["published"]
    assert published["n"] == len(plain.split(",")) * published["n_condition"]
    assert any("defined for equally many requests" in warning for warning in result["warnings"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("plain=a.csv",), "no --baseline"),
        (("/nowhere",), "/nowhere/manifest.json: no such file"),
        (("/nowhere", "--paired"), "--paired: for files only, and /nowhere is a result folder"),
        (("--baseline", "plain=absent.csv", "hook=absent.csv"), "absent.csv: no such file"),
        (("--baseline", "plain", "hook=a.csv"), "'plain' is not NAME=FILE"),
        (("--baseline", "a=a.csv", "a=b.csv"), "condition 'a' is named twice"),
        (("--baseline", "a=a.csv,b.csv", "b=b.csv", "--paired"), "--paired: 'b' has 1 files"),
        (("--baseline", "a=a.csv", "b=b.csv", "--budget", "3"), "--budget: found '3'"),
        (("--baseline", "a=a.csv", "b=b.csv", "--warmup", "-1"), "--warmup: found '-1'"),
        (("--baseline", "a=a.csv", "b=b.csv", "--primary", "p42"), "p42"),
        (("--baseline", "a=a.csv", "b=b.csv", "--unit", "min"), "--unit: found 'min'"),
        (
            ("--baseline", "a=a.csv", "b=b.csv", "--columns", "start=x"),
            "no duration; add duration=",
        ),
        (
            ("/nowhere", "--unit", "s", "--max-errors", "1%"),
            "--unit and --max-errors: for files only, and /nowhere is a result folder",
        ),
        (
            ("--baseline", "a=a", "b=b", "c=c", "--method", "published-t"),
            "published-t: needs exactly one condition",
        ),
        ((), "Missing argument"),
    ],
)
def test_wrong_use_is_one_line_and_exit_code_2(arguments: tuple[str, ...], message: str) -> None:
    done = tare(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_file_counts_once(files: dict[str, str]) -> None:
    name, _, path = files["plain"].partition(",")[0].partition("=")
    done = tare("--baseline", f"{name}={path},{path}", files["hook"])
    assert done.returncode == 2
    assert "is given twice for 'plain'" in done.stderr
    assert done.stderr.count("\n") == 1


def test_without_a_reader_there_is_no_traceback(files: dict[str, str]) -> None:
    command = f"exec {sys.executable} -m tare compare --baseline $0 $1 --json >&-"
    shell = ["bash", "-c", command, files["plain"], files["hook"]]
    done = subprocess.run(shell, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_columns_of_any_name_and_unit(files: dict[str, str], tmp_path: Path) -> None:
    """The same runs under other names and in µs have the same effect."""
    renamed = []
    for condition, text in files.items():
        paths = []
        for path in map(Path, text.partition("=")[2].split(",")):
            rows = [row.split(",") for row in path.read_text().splitlines()[1:]]
            lines = [f"{float(took) * 1000!r};{begun}" for begun, took in rows]
            paths.append(tmp_path / path.name)
            paths[-1].write_text("took;begun\n" + "\n".join(lines) + "\n")
        renamed.append(f"{condition}={','.join(map(str, paths))}")
    effects = []
    options = ("--columns", "duration=took,start=begun", "--unit", "us")
    for named, more in (([*files.values()], ()), (renamed, options)):
        done = tare("--baseline", *named, "--json", *more)
        assert done.returncode == 0, done.stderr
        effects.append(json.loads(done.stdout)["comparisons"][0]["effect"]["relative"])
    assert effects[0] == pytest.approx(effects[1], rel=1e-6)
