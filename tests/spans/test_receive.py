# SPDX-License-Identifier: Apache-2.0
"""`tare spans receive`: every form of OTLP becomes the same rows, and nothing is lost."""

import gzip
import json
import os
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from tests import in_process
from tests.spans.conftest import (
    PROGRAM,
    Receiver,
    framed,
    protobuf,
    receiving,
    request,
    rows_of,
    span,
)
from tests.waiting import SECONDS, wait_for

GRPC = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
CLIENT = Path(__file__).with_name("grpc_client.js")
PROTOBUF = "application/x-protobuf"
SMALL_FILES = ["sh", "-c", 'trap "" XFSZ; ulimit -f 8192; exec "$@"', "sh"]
ROW = {
    "host": None, "service": "shop", "span": "shop: GET / (server)", "trace_id": f"{1:032x}",
    "span_id": f"{1:016x}", "parent_id": None, "source": "span",
    "start_ns": 1_700_000_000_000_000_000, "duration_ns": 5_000, "ok": True,
}  # fmt: skip


def grpc(
    receiver: Receiver, body: bytes, folder: Path, encoding: str = "", path: str = GRPC
) -> tuple[str, bytes]:
    """The status in the trailers of the answer, and its body."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    (folder / "body").write_bytes(body)
    url = f"http://127.0.0.1:{receiver.grpc}"
    command = ["node", str(CLIENT), url, path, str(folder / "body"), encoding]
    answer = json.loads(subprocess.check_output(command))
    assert answer["status"] == 200
    return answer["trailers"]["grpc-status"], bytes.fromhex(answer["body"])


def test_every_form_is_the_same_row(receiver: Receiver, tmp_path: Path) -> None:
    text = json.dumps(request(span())).encode()
    assert receiver.post(text) == (200, b"{}")
    assert receiver.post(gzip.compress(text), content_encoding="gzip") == (200, b"{}")
    assert receiver.post(protobuf(1), PROTOBUF) == (200, b"")
    packed = gzip.compress(protobuf(1))
    assert receiver.post(packed, PROTOBUF, content_encoding="gzip") == (200, b"")
    empty = "0", b"\0\0\0\0\0"
    assert grpc(receiver, framed(protobuf(1)), tmp_path) == empty
    assert grpc(receiver, framed(protobuf(1), packed=True), tmp_path, "gzip") == empty
    code, out, _ = receiver.stop()
    assert code == 0
    assert receiver.rows() == [ROW] * 6
    assert json.loads(out) == {
        "spans": 6, "requests": 6, "refused_requests": 0,
        "rejected": {"bad_ids": 0, "bad_times": 0, "too_many_names": 0},
    }  # fmt: skip


def test_what_a_row_can_have(receiver: Receiver) -> None:
    inner = span(2, parentSpanId=f"{1:016x}", kind=3, name="pay", status={"code": 2})
    receiver.send(inner, service="")
    receiver.stop()
    (row,) = receiver.rows()
    assert row["span"] == "pay (client)"
    assert (row["service"], row["parent_id"], row["ok"]) == (None, f"{1:016x}", False)


def test_some_spans_are_rejected_and_their_sender_is_answered(receiver: Receiver) -> None:
    bad = [span(3, spanId="00"), span(4, endTimeUnixNano="0"), span(5, endTimeUnixNano="1")]
    answer = receiver.send(span(1), *bad, span(2))
    assert answer["partialSuccess"] == {
        "rejectedSpans": "3",
        "errorMessage": "spans 1 without a trace ID of 16 and a span ID of 8 bytes, 2 that did not"
        " end after their start",
    }
    code, out, _ = receiver.stop(signal.SIGINT)
    assert code == 0
    assert json.loads(out)["rejected"] == {"bad_ids": 1, "bad_times": 2, "too_many_names": 0}
    assert len(receiver.rows()) == 2


def test_spans_are_in_the_file_while_it_is_written(receiver: Receiver) -> None:
    """So that after kill -9 at most the last 100 ms are lost."""
    receiver.send(span())
    wait_for(lambda: len(receiver.rows()) == 1, "the span was not written")
    receiver.process.kill()
    receiver.process.wait()
    assert receiver.rows() == [ROW]


def test_requests_under_way_at_the_end_are_answered(receiver: Receiver) -> None:
    """Many senders, and a signal while they send: each answered span is in the file."""
    answered = 0
    senders = [
        subprocess.Popen(
            [
                *("curl", "-s", "-o", "/dev/null", "-w", "%{http_code}\n", "--fail-early"),
                *("-H", "content-type: application/json", "-d", json.dumps(request(span()))),
                f"http://127.0.0.1:{receiver.http}/v1/traces?[1-200]",
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    wait_for(lambda: len(receiver.rows()) > 20, "nothing arrived")
    code, out, err = receiver.stop()
    for sender in senders:
        said, _ = sender.communicate()
        answered += said.split().count("200")
    assert code == 0, err
    # Each sender may have missed one answer.
    assert json.loads(out)["spans"] >= answered > 10
    assert len(receiver.rows()) == json.loads(out)["spans"]


def test_the_file_is_read_by_compare_and_show(receiver: Receiver) -> None:
    for number in range(1, 300):
        start = 10**18 + 10**6 * number
        times = {"startTimeUnixNano": str(start), "endTimeUnixNano": str(start + 5_000 + number)}
        receiver.send(span(number, **times))
    receiver.stop()
    done = in_process.tare("spans", "show", receiver.file, "--json")
    assert done.returncode == 0, done.stderr
    (kind,) = json.loads(done.stdout)["files"][0]["kinds"]
    assert (kind["span"], kind["spans"]) == ("shop: GET / (server)", 299)
    done = in_process.tare("compare", receiver.file, receiver.file, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["comparisons"][0]["span"] == "shop: GET / (server)"


def test_spans_are_separated_by_an_attribute_that_was_kept(tmp_path: Path) -> None:
    def of(tier: str, **more: str) -> list[dict[str, object]]:
        pairs = {"tier": tier, "user.id": "x"} | more
        return [{"key": key, "value": {"stringValue": value}} for key, value in pairs.items()]

    options = ["--attribute", "tier", "--attribute", "none"]
    with receiving(tmp_path / "spans.arrow", options=options) as receiver:
        for number, tier in enumerate(["gold", "silver", "gold", 'a "b"'], 1):
            receiver.send(span(number, attributes=of(tier)))
        receiver.send(span(5))
        receiver.stop()
    kept = [row["attributes"] for row in receiver.rows()]
    assert [None if text is None else json.loads(text) for text in kept] == [
        {"tier": "gold"}, {"tier": "silver"}, {"tier": "gold"}, {"tier": 'a "b"'}, None,
    ]  # fmt: skip
    done = in_process.tare("spans", "show", receiver.file, "--group-by", "tier", "--json")
    assert done.returncode == 0, done.stderr
    kinds = {kind["span"]: kind["spans"] for kind in json.loads(done.stdout)["files"][0]["kinds"]}
    get = "shop: GET / (server)"
    assert kinds == {f"{get} [gold]": 2, f"{get} [silver]": 1, f'{get} [a "b"]': 1, get: 1}
    done = in_process.tare("compare", receiver.file, receiver.file, "--group-by", "tier", "--json")
    assert done.returncode == 0, done.stderr
    assert {verdict["span"] for verdict in json.loads(done.stdout)["comparisons"]} == {*kinds}
    done = in_process.tare("spans", "show", receiver.file, "--group-by", "user.id")
    assert done.returncode == 2
    assert "no span has the attribute 'user.id'; there are tier" in done.stderr


def test_a_file_without_attributes_says_how_to_keep_them(receiver: Receiver) -> None:
    receiver.send(span())
    receiver.stop()
    done = in_process.tare("spans", "show", receiver.file, "--group-by", "tier")
    assert done.returncode == 2
    assert "--group-by: no column attributes; name the attribute" in done.stderr
    assert "--attribute tier" in done.stderr


def test_a_port_that_is_taken_is_one_line(receiver: Receiver, tmp_path: Path) -> None:
    done = subprocess.run(
        [PROGRAM, "receive", "--out", tmp_path / "b", "--http", f"127.0.0.1:{receiver.http}",
         "--grpc", "127.0.0.1:0"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert f"--http 127.0.0.1:{receiver.http}: choose another port: " in done.stderr
    assert not (tmp_path / "b").exists()


def test_a_file_that_another_receiver_writes_is_left_alone(receiver: Receiver) -> None:
    receiver.send(span())
    done = subprocess.run(
        [PROGRAM, "receive", "--out", receiver.file, "--http", "127.0.0.1:0",
         "--grpc", "127.0.0.1:0"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "another program is writing this file" in done.stderr
    receiver.stop()
    assert receiver.rows() == [ROW]


def test_a_full_disk_ends_it_with_what_was_lost(tmp_path: Path) -> None:
    with receiving(tmp_path / "spans.arrow", before=SMALL_FILES) as receiver:
        with suppress(OSError):
            for first in range(1, 100_000, 100):
                receiver.post(protobuf(*range(first, first + 100)), PROTOBUF)
        _, err = receiver.process.communicate()
    assert receiver.process.returncode == 1
    assert "File too large" in err
    assert "were not written" in err
    assert 0 < len(rows_of(receiver.file)) < 100_000


def test_a_disk_that_is_full_from_the_beginning() -> None:
    command = [PROGRAM, "receive", "--out", "/dev/full", "--grpc", "127.0.0.1:0"]
    done = subprocess.run(
        [*command, "--http", "127.0.0.1:0"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == "tare-spans: /dev/full: No space left on device\n"


def test_a_program_whose_spans_are_received(tmp_path: Path) -> None:
    """The program sends one span, prints, and exits with a code of its own."""
    body = json.dumps(request(span()))
    script = (
        f"curl -sf -H 'content-type: application/json' -d '{body}' \"$OTEL_EXPORTER_OTLP_ENDPOINT"
        '/v1/traces"; echo $OTEL_TRACES_EXPORTER $OTEL_METRICS_EXPORTER; exit 7'
    )
    out, costs = tmp_path / "spans.arrow", tmp_path / "costs.arrow"
    done = subprocess.run(
        [PROGRAM, "run", "--out", out, "--costs", costs, "--", "sh", "-c", script],
        env=os.environ | {"OTEL_METRICS_EXPORTER": "console"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 7
    assert done.stdout == "{}otlp console\n"
    assert done.stderr == f"tare-spans: 1 spans of 1 requests in {out}\n"
    assert rows_of(out) == [ROW]
    counted = {row["metric"]: row["count"] for row in rows_of(costs)}
    assert counted == {"spans": 1, "spans_rejected": 0, "requests": 1, "requests_refused": 0}


def test_a_signal_goes_to_the_program(tmp_path: Path) -> None:
    script = "trap 'echo ended; exit 3' TERM; echo begun; while :; do sleep 0.1; done"
    process = subprocess.Popen(
        [PROGRAM, "run", "--out", tmp_path / "spans.arrow", "--", "sh", "-c", script],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.terminate()
        out, _ = process.communicate(timeout=SECONDS)
        assert (process.returncode, out) == (3, "ended\n")
    finally:
        process.kill()


def test_a_program_that_cannot_be_run(tmp_path: Path) -> None:
    command = [PROGRAM, "run", "--out", str(tmp_path / "spans.arrow"), "--", "/none/such"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "tare-spans: COMMAND /none/such: No such file or directory\n"
