# SPDX-License-Identifier: Apache-2.0
"""Formats of load generators with a row a request, beside those of formats_test.py."""

import gzip
from pathlib import Path

import pytest

from tare.errors import InputError
from tare.samples.formats.formats_test import T, read

POINT = (
    '{"metric":"%s","type":"Point","data":{"time":"%s","value":%s,'
    '"tags":{"expected_response":"%s","method":"GET","status":"%s"}}}\n'
)
K6 = (
    '{"type":"Metric","data":{"name":"http_req_duration","type":"trend"},'
    '"metric":"http_req_duration"}\n'
    + POINT % ("http_reqs", "2023-11-14T22:13:20.5Z", 1, "true", 200)
    + POINT % ("http_req_duration", "2023-11-14T22:13:20.500000001Z", 0.2505, "true", 200)
    + POINT % ("http_req_duration", "2023-11-15T03:43:21.5+05:30", 1e-3, "false", 503)
)
GATLING = (
    "RUN\tSim\tsim\t1700000000000\t \t3.9.5\n"
    "USER\ts\tSTART\t1700000000000\n"
    "REQUEST\tg\tone\t1700000000000\t1700000000012\tOK\t \n"
    "GROUP\tg\t1700000000000\t1700000000012\t12\tOK\n"
    "REQUEST\t\ttwo\t1700000000020\t1700000000035\tKO\tfound 500\n"
)
JTL = """<?xml version="1.0" encoding="UTF-8"?>
<testResults version="1.2">
<httpSample t="12" it="0" lt="11" ts="1700000000000" s="true" lb="GET &lt;/&gt;" rc="200" by="345">
  <httpSample t="5" ts="1700000000001" s="true" rc="302" by="9"/>
  <java.net.URL>http://127.0.0.1/</java.net.URL>
</httpSample>
<sample t="15" ts="1700000000020" s="false" lb="x" rc="Non HTTP response code: E" by="0"/>
"""


def test_k6_json(tmp_path: Path) -> None:
    for name, content in (("a.json", K6.encode()), ("a.json.gz", gzip.compress(K6.encode()))):
        found = read(tmp_path, name, content)
        assert found["duration_ns"] == [250_500, 1_000]
        # A point is stamped at the request's end.
        assert found["start_ns"] == [
            T * 10**9 + 500_000_001 - 250_500,
            (T + 1) * 10**9 + 499_999_000,
        ]
        assert found["ok"] == [True, False]
        assert found["status"] == [200, 503]
        assert found["warnings"] == []


def test_broken_lines_of_k6_json_are_counted(tmp_path: Path) -> None:
    no_value = POINT % ("http_req_duration", "2023-11-14T22:13:20Z", '"slow"', "true", 200)
    found = read(tmp_path, "a.json", K6 + no_value + K6.splitlines()[3][:50])
    assert found["duration_ns"] == [250_500, 1_000]
    assert found["warnings"] == ["2 rows without a usable time (place 3, 4): left out"]


def test_jmeter_xml(tmp_path: Path) -> None:
    for name, content in (("a.jtl", JTL + "</testResults>"), ("cut.jtl", JTL)):
        found = read(tmp_path, name, content)
        assert found["start_ns"] == [T * 10**9, T * 10**9 + 20_000_000]
        assert found["duration_ns"] == [12_000_000, 15_000_000]  # what is inside is no request
        assert found["ok"] == [True, False]
        assert found["status"] == [200, 0]
        assert found["bytes"] == [345, 0]
        assert "whole milliseconds" in found["warnings"][0]
        assert any("breaks off" in line for line in found["warnings"]) == (name == "cut.jtl")


def test_jmeter_xml_of_many_chunks_keeps_every_row(tmp_path: Path) -> None:
    rows = "".join(f'<sample t="{n}" ts="1700000{n:06d}" s="true"/>\n' for n in range(60_000))
    found = read(
        tmp_path, "a.xml", f'<testResults version="1.2">\n{rows}<sample t="x"/></testResults>'
    )
    assert len(rows) > 2 << 20
    assert found["duration_ns"] == [n * 1_000_000 for n in range(60_000)]
    assert "1 row without a usable time (place 60001): left out" in found["warnings"]


def test_oha(tmp_path: Path) -> None:
    text = (
        "request-start,DNS,DNS+dialup,Response-delay,request-duration,bytes,status\n"
        "0.000593292,0.1,0.1,0.1,0.00186269,187,200\n0.001,0,0,0,0.5,7,500\nx,0,0,0,0.5,7,200\n"
    )
    found = read(tmp_path, "a.csv", text)
    assert found["start_ns"] == [593_292, 1_000_000]
    assert found["duration_ns"] == [1_862_690, 500_000_000]
    assert (found["ok"], found["status"], found["bytes"]) == ([True, False], [200, 500], [187, 7])
    assert "no request that had no answer" in found["warnings"][0]
    assert "1 row without a usable time (place 3): left out" in found["warnings"]


def test_hey(tmp_path: Path) -> None:
    header = (
        "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,"
        "status-code,offset\n"
    )
    row = "0.0019,0.0006,0.0000,0.0001,0.0009,0.0001,%s,%s\n"
    found = read(tmp_path, "a.csv", header + row % (200, "0.0010") + row % (404, "0.0001"))
    assert found["start_ns"] == [100_000, 1_000_000]
    assert found["duration_ns"] == [1_900_000] * 2
    assert found["ok"] == [False, True]
    assert "rounds to 0.1 ms" in found["warnings"][0]


@pytest.mark.parametrize("user", ["", "7\t"])
def test_gatling(tmp_path: Path, user: str) -> None:
    """Until 3.3 a field of the user's number stood behind the word REQUEST."""
    found = read(tmp_path, "simulation.log", GATLING.replace("REQUEST\t", f"REQUEST\t{user}"))
    assert found["start_ns"] == [T * 10**9, T * 10**9 + 20_000_000]
    assert found["duration_ns"] == [12_000_000, 15_000_000]
    assert found["ok"] == [True, False]
    assert found["error"] == [None, "found 500"]


def test_a_gatling_log_that_was_cut_tells_its_last_row(tmp_path: Path) -> None:
    found = read(tmp_path, "simulation.log", GATLING + "REQUEST\t\ttwo\t170000\t1700000000035\tO")
    assert len(found["duration_ns"]) == 2
    assert "1 row without a usable time (place 6): left out" in found["warnings"]


def test_the_binary_log_of_gatling_is_refused_with_a_way_out(tmp_path: Path) -> None:
    path = tmp_path / "simulation.log"
    with pytest.raises(InputError, match=r"binary log of Gatling 3\.13\.5; run .* text"):
        read(tmp_path, path.name, b"\0\0\0\0\x063.13.5\0\0\0\x03Sim\0\0")
    with pytest.raises(InputError, match="binary log of Gatling"):
        read(tmp_path, path.name, b"\0\0\0\0")


def test_the_totals_of_locust_are_no_requests(tmp_path: Path) -> None:
    text = "Type,Name,Request Count,Failure Count,Median Response Time\nGET,/,5,0,12\n"
    with pytest.raises(InputError, match=r"Locust's totals, .*one row per request"):
        read(tmp_path, "run_stats.csv", text)
