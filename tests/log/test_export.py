# SPDX-License-Identifier: Apache-2.0
"""What other programs read in exported files is what `tare log dump` prints."""

import json
import re
import shutil
import signal
import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.log.conftest import TARE_LOG, Row, dump, ran
from tests.waiting import SECONDS, wait_for

PAIRS = {
    "request>": ("request", "request<"),
    "parse  in": ("parse", "parse  out"),
    "work tin": ("work", "work tout"),
    "go": ("go", "gone"),
}
"""By the beginning's channel: the span's name and the channel of its end."""


@dataclass(frozen=True)
class Span:
    tid: int
    name: str
    begin: int
    end: int
    parent: "Span | None" = None


@dataclass(frozen=True)
class Logged:
    """A file, its rows, and what they mean by the letter of docs/internals/log.md."""

    file: Path
    rows: list[Row]
    spans: list[Span]
    events: list[Row]

    def export(self, to: str, folder: Path, *more: str) -> Path:
        out = folder / f"out.{to}"
        command = [
            TARE_LOG,
            "export",
            str(self.file),
            "--to",
            to,
            "--out",
            str(out),
            "--pair",
            "go=gone",
        ]
        done = subprocess.run([*command, "--json", *more], check=True, capture_output=True)
        lost = sum(row.lost for row in self.rows)
        counted = {"spans": len(self.spans), "events": len(self.events), "lost": lost}
        counted |= dict.fromkeys(("unserved", "deferred", "unanswered"), 0)
        told = json.loads(done.stdout)
        # Beginnings and ends that found each other, and those that did not, are all there are.
        ends = {end for _, end in PAIRS.values()}
        halves = sum(row.channel in ends or row.channel in PAIRS for row in self.rows)
        assert told.pop("unpaired") == halves - 2 * len(self.spans)
        assert told == counted
        return out

    @property
    def lost(self) -> int:
        return sum(row.lost for row in self.rows)


def understood(file: Path) -> Logged:
    """Matches each end with the nearest beginning of its name since the thread's last loss."""
    rows = dump(file)
    spans, events = [], []
    open_: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        stack = open_[row.tid]
        name = next((name for name, end in PAIRS.values() if end == row.channel), None)
        if row.lost:
            stack.clear()
        elif row.channel in PAIRS:
            stack.append(row)
        elif name is None:
            events.append(row)
        elif any(PAIRS[open_row.channel][0] == name for open_row in stack):
            while PAIRS[(begin := stack.pop()).channel][0] != name:
                pass
            spans.append(Span(row.tid, name, begin.time_ns, row.time_ns))
    return Logged(file, rows, spans, events)


@pytest.fixture(scope="module", params=["whole", "with losses"])
def logged(
    request: pytest.FixtureRequest,
    compiled: Callable[[str], Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> Logged:
    """Two threads and their spans; and a ring so small that much of them is lost."""
    file = tmp_path_factory.mktemp("logged") / "events.log"
    if request.param == "whole":
        ran(file, compiled("nested"), 2, 500)
        found = understood(file)
        assert Counter(span.name for span in found.spans) == {
            "request": 998, "parse": 1000, "work": 3000, "go": 1000,
        }  # fmt: skip
        assert found.lost == 0
    else:
        ran(file, compiled("nested"), 2, 6_000, 0, "lose", TARE_LOG_RING="64K")
        found = understood(file)
        assert found.lost > 0
    return found


def test_perfetto(logged: Logged, tmp_path: Path) -> None:
    """By the official classes; slices are put together as Perfetto does, by track and time."""
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

    file = logged.export("perfetto", tmp_path, "--counter", "level")
    trace = Trace()
    trace.ParseFromString(file.read_bytes())
    assert trace.packet[0].trace_packet_defaults.timestamp_clock_id == 1
    names: dict[int, str] = {}
    tracks: dict[int, Any] = {}
    slices: dict[int, list[tuple[int, str]]] = defaultdict(list)
    found, instants, levels, lost = [], Counter[str](), [], 0
    for packet in trace.packet:
        names |= {name.iid: name.name for name in packet.interned_data.event_names}
        if packet.HasField("track_descriptor"):
            assert packet.track_descriptor.uuid not in tracks
            tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        track = tracks[event.track_uuid]
        assert track.thread.tid or track.parent_uuid in tracks
        name = event.name or names.get(event.name_iid, "")
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            slices[event.track_uuid].append((packet.timestamp, name))
            lost += int(name.split()[0]) if name.endswith("lost") else 0
        elif event.type == TrackEvent.TYPE_SLICE_END:
            begin, name = slices[event.track_uuid].pop()
            is_whole = all(
                annotation.string_value != "not known" for annotation in event.debug_annotations
            )
            if is_whole and not name.endswith("lost"):
                found.append(Span(track.thread.tid, name, begin, packet.timestamp))
        elif event.type == TrackEvent.TYPE_INSTANT:
            instants[name] += 1
        else:
            assert (event.type, track.name) == (TrackEvent.TYPE_COUNTER, "level")
            levels.append(event.counter_value)
    assert Counter(found) == Counter(logged.spans)
    assert levels == [int(row.payload) for row in logged.events if row.channel == "level"]
    unbegun = {end for _, end in PAIRS.values()}
    others = Counter(row.channel for row in logged.events if row.channel != "level")
    assert {name: count for name, count in instants.items() if name not in unbegun} == others
    assert lost == logged.lost
    threads = {track.thread.tid: track for track in tracks.values() if track.thread.tid}
    assert set(threads) == {row.tid for row in logged.rows}
    assert {track.thread.thread_name for track in threads.values()} == {"nested"}
    (process,) = (track.process for track in tracks.values() if track.process.pid)
    assert process.process_name == "nested"
    assert process.cmdline[0].endswith("/nested")
    clocks = [packet.clock_snapshot for packet in trace.packet if packet.HasField("clock_snapshot")]
    assert len(clocks) >= 2
    assert {clock.clock_id for snapshot in clocks for clock in snapshot.clocks} == {1, 5}


def test_perfettos_own_reader(logged: Logged, tmp_path: Path) -> None:
    shell = shutil.which("trace_processor_shell") or shutil.which("trace_processor")
    if shell is None:
        pytest.skip("there is no trace_processor")
    from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

    file = logged.export("perfetto", tmp_path)
    config = TraceProcessorConfig(bin_path=shell)
    with TraceProcessor(trace=str(file), config=config) as processor:
        rows = processor.query("select name, count(*) as n from slice where dur >= 0 group by name")
        found = {row.name: row.n for row in rows}
    assert {name: found[name] for name, _ in PAIRS.values()} == Counter(
        span.name for span in logged.spans
    )


def test_chrome(logged: Logged, tmp_path: Path) -> None:
    file = logged.export("chrome", tmp_path, "--counter", "level")
    trace = json.loads(file.read_text())
    events = trace["traceEvents"]
    began = int(trace["otherData"]["began_unix_nano"])

    def nanoseconds(microseconds: float) -> int:
        return round(microseconds * 1000)

    found = [
        Span(
            event["tid"],
            event["name"],
            began + nanoseconds(event["ts"]),
            began + nanoseconds(event["ts"]) + nanoseconds(event["dur"]),
        )
        for event in events
        if event["ph"] == "X" and event["args"].get("end") is None
    ]
    assert Counter(found) == Counter(logged.spans)
    levels = [event["args"]["value"] for event in events if event["ph"] == "C"]
    assert levels == [int(row.payload) for row in logged.events if row.channel == "level"]
    texts = [event["args"]["payload"] for event in events if event["name"] == "text"]
    assert texts == [row.payload for row in logged.events if row.channel == "text"]
    assert sum(event["args"]["lost"] for event in events if event["ph"] == "b") == logged.lost
    assert {event["args"]["name"] for event in events if event["ph"] == "M"} == {"nested"}


def test_otlp(logged: Logged, tmp_path: Path) -> None:
    """By the official classes, which refuse unknown fields."""
    from google.protobuf import json_format
    from opentelemetry.proto.logs.v1.logs_pb2 import LogsData
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    file = logged.export("otlp", tmp_path)
    spans, records = [], []
    for line in file.read_text().splitlines():
        data = json.loads(line)
        if "resourceSpans" in data:
            for resource_spans in json_format.ParseDict(
                hex_to_base64(data), TracesData()
            ).resource_spans:
                attributes = {a.key: a.value for a in resource_spans.resource.attributes}
                assert attributes["service.name"].string_value == "nested"
                spans += [span for scope in resource_spans.scope_spans for span in scope.spans]
        else:
            for logs in json_format.ParseDict(hex_to_base64(data), LogsData()).resource_logs:
                records += [record for scope in logs.scope_logs for record in scope.log_records]
    tid = {span.span_id: number(span, "thread.id") for span in spans}
    found = [
        Span(tid[span.span_id], span.name, span.start_time_unix_nano, span.end_time_unix_nano)
        for span in spans
    ]
    assert Counter(found) == Counter(logged.spans)
    by_id = {span.span_id: span for span in spans}
    for span in spans:
        if around := by_id.get(span.parent_span_id):
            assert around.trace_id == span.trace_id
            assert around.start_time_unix_nano <= span.start_time_unix_nano
            assert span.end_time_unix_nano <= around.end_time_unix_nano
    works = [span for span in spans if span.name == "work" and span.parent_span_id in by_id]
    assert {by_id[span.parent_span_id].name for span in works} <= {"work", "request"}
    texts = [record for record in records if record.body.string_value == "text"]
    assert len(texts) == sum(row.channel == "text" for row in logged.events)
    inside = [by_id[record.span_id].name for record in texts if record.span_id in by_id]
    assert inside
    assert set(inside) <= {"parse", "request", "work", "go"}
    assert sum(number(record, "tare.lost") for record in records) == logged.lost


def hex_to_base64(data: Any) -> Any:
    """The protocol's JSON has identifiers in hexadecimal, against that of protocol buffers."""
    import base64

    if isinstance(data, dict):
        ids = {"traceId", "spanId", "parentSpanId"}
        return {
            key: base64.b64encode(bytes.fromhex(value)).decode()
            if key in ids
            else hex_to_base64(value)
            for key, value in data.items()
        }
    return [hex_to_base64(part) for part in data] if isinstance(data, list) else data


def number(of: Any, key: str) -> int:
    return sum(
        int(attribute.value.int_value) for attribute in of.attributes if attribute.key == key
    )


def test_parquet(logged: Logged, tmp_path: Path) -> None:
    rows = pq.read_table(logged.export("parquet", tmp_path)).to_pylist()
    found = [
        Span(row["tid"], row["span"], row["start_ns"], row["start_ns"] + row["duration_ns"])
        for row in rows
        if row["duration_ns"] is not None
    ]
    # Durations are of ticks, times of the clock: they differ by what it is slewed.
    assert Counter((span.tid, span.name, span.begin) for span in found) == Counter(
        (span.tid, span.name, span.begin) for span in logged.spans
    )
    ends = zip(sorted(span.end for span in found), sorted(s.end for s in logged.spans), strict=True)
    assert max(abs(exported_end - logged_end) for exported_end, logged_end in ends) < 100_000
    assert sum(row["lost"] or 0 for row in rows) == logged.lost
    names = {end for _, end in PAIRS.values()}
    events = [row for row in rows if row["channel"] is not None and row["channel"] not in names]
    assert [row["channel"] for row in events] == [row.channel for row in logged.events]
    told = [row["text"] if row["payload"] is None else str(row["payload"]) for row in events]
    assert told == [row.payload for row in logged.events]
    assert {row["source"] for row in rows if row["span"] is None} == {"event"}
    assert {row["source"] for row in rows if row["span"] is not None} == {"span"}


def test_ctf(logged: Logged, tmp_path: Path) -> None:
    """By babeltrace2: all events of all threads in order of time, and the losses."""
    is_babeltraced(logged.export("ctf", tmp_path), logged.rows)


def is_babeltraced(folder: Path, rows: list[Row]) -> None:
    if shutil.which("babeltrace2") is None:
        pytest.skip("there is no babeltrace2")
    command = ["babeltrace2", "--no-delta", "--clock-seconds", "--clock-gmt", str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    line = re.compile(
        r'\[(\d+)\.(\d{9})\] \S+ (.*?): \{ vpid = (\d+), vtid = (\d+), procname = "(.*?)" \}, '
        r"\{ (?:payload = (-?\d+)|length = \d+, text = (.*)) \}"
    )
    found = [line.fullmatch(match) for match in done.stdout.splitlines()]
    read = []
    for match in found:
        assert match is not None
        seconds, nanoseconds, name, pid, tid, thread, payload, text = match.groups()
        value = payload if payload is not None else json.loads(text)
        read.append((int(seconds + nanoseconds), int(pid), int(tid), thread, name, value))
    expected = [
        (row.time_ns, row.pid, row.tid, row.thread, row.channel, row.payload)
        for row in rows
        if not row.lost
    ]
    assert sorted(read) == sorted(expected)
    assert [event[0] for event in read] == sorted(event[0] for event in read)
    told = re.findall(r"discarded (\d+) event", done.stderr)
    assert sum(int(count) for count in told) == sum(row.lost for row in rows)


def test_out_is_never_the_file_itself(logged: Logged, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(logged.file)
    before = logged.file.read_bytes()
    command = [TARE_LOG, "export", str(logged.file), "--to", "chrome", "--out", str(link)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert "it is the file to read" in done.stderr
    assert logged.file.read_bytes() == before


@pytest.mark.parametrize("to", ["perfetto", "chrome", "otlp", "parquet", "ctf", "cloudprofiler"])
def test_what_is_stopped_leaves_what_was_there(
    to: str, compiled: Callable[[str], Path], tmp_path: Path
) -> None:
    """By Ctrl-C while it writes, and by a file that may not become so large."""
    file, out = tmp_path / "events.log", tmp_path / "out"
    ran(file, compiled("nested"), 2, 100_000, 0)
    is_folder = to in ("ctf", "cloudprofiler")
    if not is_folder:
        out.write_text("before")
    command = [TARE_LOG, "export", str(file), "--to", to, "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as stopped:
        wait_for(lambda: list(tmp_path.glob(".tare-*")))
        stopped.send_signal(signal.SIGINT)
        assert stopped.wait(SECONDS) == 128 + signal.SIGINT
    limited = ["bash", "-c", 'trap "" XFSZ; ulimit -f 100; exec "$@"', "bash", *command]
    failed = subprocess.run(limited, capture_output=True, text=True, check=False)
    assert failed.returncode == 1
    assert failed.stderr == f"tare-log: --out {out}: File too large\n"
    left = {file} if is_folder else {file, out}
    assert set(tmp_path.iterdir()) == left
    assert is_folder or out.read_text() == "before"
