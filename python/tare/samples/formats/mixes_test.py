# SPDX-License-Identifier: Apache-2.0
"""What load generators write beside single requests of one kind: sums, and other kinds."""

from pathlib import Path

import pytest

from tare.errors import InputError
from tare.samples import ImportOptions, parse_columns, read_files, read_load_output
from tare.samples.formats.formats_test import T, read
from tare.samples.formats.jmeter import APART
from tare.samples.formats.k6_csv import APART as K6_APART
from tare.samples.formats.tool_formats_test import GATLING, POINT

HEADER = "timeStamp,elapsed,label,responseMessage,threadName,success\n"
SUM = '"Number of samples in transaction : %s, number of failing samples : 0"'


def jtl(thread: str, start: int, rows: list[tuple[int, str, str]]) -> list[str]:
    """Rows (elapsed, label, message) that follow each other; a sum begins where they began."""
    lines, at = [], start
    for elapsed, label, message in rows:
        begun = start if "transaction" in message else at
        lines.append(f"{T}{begun:03d},{elapsed},{label},{message},{thread},true\n")
        at += elapsed if begun == at else 0
    return lines


def test_sums_of_a_transaction_controller_are_no_requests(tmp_path: Path) -> None:
    """Two users by turns, an inner transaction in an outer transaction."""
    rows = [
        (10, "GET", "OK"), (20, "POST", "OK"), (30, "pay", SUM % 2), (5, "GET", "OK"),
        (35, "Checkout", SUM % 3),
    ]  # fmt: skip
    users = zip(jtl("g 1-1", 0, rows), jtl("g 1-2", 4, rows), strict=True)
    text = HEADER + "".join(line for pair in users for line in pair)
    found = read(tmp_path, "a.jtl", text)
    assert sorted(found["duration_ns"]) == [n * 1_000_000 for n in (5, 5, 10, 10, 20, 20)]
    assert (
        "4 rows of transactions left out: their requests have their own rows" in (found["warnings"])
    )


def test_a_parent_sample_before_its_requests_is_no_request(tmp_path: Path) -> None:
    """With "Generate parent sample" JMeter writes the parent first; here it takes 1 ms more."""
    text = HEADER + "".join(
        f"{T}{start:03d},{took},{label},{message},t,true\n"
        for begun in (0, 40)
        for start, took, label, message in (
            (begun, 31, "buy", SUM % 2),
            (begun + 1, 10, "GET", "OK"),
            (begun + 11, 20, "GET", "OK"),
        )
    )
    found = read(tmp_path, "a.jtl", text)
    assert found["duration_ns"] == [n * 1_000_000 for n in (10, 20, 10, 20)]
    assert any("2 rows of transactions left out" in line for line in found["warnings"])


def test_transactions_without_their_requests_stay(tmp_path: Path) -> None:
    rows = [*jtl("t", 0, [(30, "buy", SUM % 2)]), *jtl("t", 30, [(5, "GET", "OK")])]
    rows += jtl("t", 35, [(31, "buy", SUM % 2)])
    found = read(tmp_path, "a.jtl", HEADER + "".join(rows))
    assert found["duration_ns"] == [n * 1_000_000 for n in (30, 5, 31)]
    assert not any("left out" in line for line in found["warnings"])


def test_sums_in_xml(tmp_path: Path) -> None:
    plain = '<httpSample t="10" ts="1700000000000" s="true" lb="GET" tn="t" rm="OK"/>'
    doubled = f'<sample t="10" ts="1700000000000" s="true" lb="buy" tn="t" rm={SUM % 1}/>'
    parent = f'<sample t="9" ts="1700000000010" s="true" lb="buy" tn="t" rm={SUM % 1}>%s</sample>'
    text = f'<testResults version="1.2">{plain}{doubled}{parent % plain}</testResults>'
    found = read(tmp_path, "a.jtl", text)
    assert found["duration_ns"] == [10_000_000, 9_000_000]
    assert any("1 rows of transactions left out" in line for line in found["warnings"])


def test_labels_of_jmeter_are_told_and_can_be_told_apart(tmp_path: Path) -> None:
    text = HEADER + "".join(jtl("t", 0, [(1, "ping", "OK"), (100, "checkout", "OK")]))
    found = read(tmp_path, "a.jtl", text)
    (told,) = [line for line in found["warnings"] if "count as one kind" in line]
    assert "requests of 2 different labels ('checkout', 'ping')" in told
    _, columns, _, unit = APART.split()
    assert APART in told
    path = tmp_path / "a.jtl"
    runs = read_files(
        {"a": [path], "b": [path]}, "a", options=ImportOptions(parse_columns(columns), unit)
    ).runs
    assert [(run.span, run.summaries["p50"]) for run in runs[:2]] == [
        ("checkout", 100_000_000),
        ("ping", 1_000_000),
    ]


def test_names_of_k6_are_told_and_can_be_told_apart(tmp_path: Path) -> None:
    text = "metric_name,timestamp,metric_value,expected_response,name,scenario\n" + "".join(
        f"{metric},{T},{value},{ok},{name},default\n"
        for metric in ("http_reqs", "http_req_duration")
        for value, ok, name in ((1, "true", "ping"), (100, "true", "pay"), (7, "false", "pay"))
    )
    found = read(tmp_path, "a.csv", text)
    assert len(found["duration_ns"]) == 3
    (told,) = found["warnings"]
    assert "requests of 2 different names ('pay', 'ping')" in told
    _, columns, _, unit = (K6_APART % "name").split()
    assert K6_APART % "name" in told
    path = tmp_path / "a.csv"
    runs = read_files(
        {"a": [path], "b": [path]}, "a", options=ImportOptions(parse_columns(columns), unit)
    ).runs
    assert [(run.span, run.requests, run.errors) for run in runs[:2]] == [
        ("pay", 2, 1),
        ("ping", 1, 0),
    ]


def test_names_of_k6_json_and_gatling_are_told(tmp_path: Path) -> None:
    points = "".join(
        POINT.replace('"tags":{', f'"tags":{{"scenario":"{name}",')
        % ("http_req_duration", "2023-11-14T22:13:20Z", 1, "true", 200)
        for name in "abcd"
    )
    (told,) = read(tmp_path, "a.json", points)["warnings"]
    assert "requests of 4 different scenarios ('a', 'b', 'c' …)" in told
    _, told = read(tmp_path, "simulation.log", GATLING)["warnings"]
    assert "requests of 2 different names ('one', 'two')" in told


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        (
            "a.jtl",
            "timeStamp,elapsed\n2026/01/31 12:00:00.123,5\n",
            "timeStamp is '2026/01/31 12:00:00.123', not a number; write it with"
            " jmeter.save.saveservice.timestamp_format=ms",
        ),
        ("a.csv", f"metric_name,timestamp,metric_value\nvus,{T},1\n", "no http_req_duration in it"),
        ("a.json", POINT % ("vus", "2023-11-14T22:13:20Z", 1, "true", 200), "no point of http_req"),
        ("b.json", '{\n  "metric": "x"\n}\n', "3 lines are not JSON, expected one object per line"),
        ("c.json", '{\n"resourceSpans": []\n}\n', "no span in it; 3 lines are not JSON"),
        ("d.json", '{"resourceSpans": []}\n', "no span in it"),
        ("simulation.log", "RUN\tSim\tsim\t1700000000000\t \t3.9.5\n", "no line of a REQUEST"),
    ],
)
def test_a_file_without_requests_says_why(tmp_path: Path, name: str, text: str, says: str) -> None:
    with pytest.raises(InputError) as raised:
        read(tmp_path, name, text)
    assert says in str(raised.value)


def test_a_jtl_with_dates_is_read_without_them(tmp_path: Path) -> None:
    path = tmp_path / "a.jtl"
    path.write_text("timeStamp,elapsed,success\n2026/01/31 12:00:00.123,5,true\n")
    options = ImportOptions(parse_columns("duration=elapsed,ok=success"), "ms")
    assert read_load_output(path, options=options)["duration_ns"].to_pylist() == [5_000_000]
