# SPDX-License-Identifier: Apache-2.0
"""One line for many runs with the same cause."""

from tare.samples.notes import grouped, of_lab


def test_many_files_with_one_cause_are_one_line() -> None:
    lines = [("new", f"new{n}.csv", f"{n} rows left out") for n in range(1, 13)]
    lines.append(("old", "old3.csv", "7 rows left out"))
    assert list(grouped(lines, "file")) == [
        "'new': 12 files, the first is new1.csv: 1 rows left out",
        "old3.csv: 7 rows left out",
    ]


def test_causes_that_differ_in_words_are_lines_of_their_own() -> None:
    lines = [("new", "run 1", "the service crashed"), ("new", "run 2", "no answer in 5 s")]
    assert list(grouped(lines, "run")) == ["run 1: the service crashed", "run 2: no answer in 5 s"]


def test_warnings_of_runs_are_grouped_and_others_stay() -> None:
    lines = ["run 1 (hook): 3 answers were late", "no control", "run 4 (hook): 5 answers were late"]
    assert of_lab(lines) == [
        "no control",
        "'hook': 2 runs, the first is run 1 (hook): 3 answers were late",
    ]
