# SPDX-License-Identifier: Apache-2.0
"""What is measured by MooBench's experiment: each puts itself around the same Java program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from bench.log import receivers, sinks
from bench.log.sinks import METHOD, OUTPUT, Sinks
from bench.results import ROOT

from tare.native import native

PACKAGE = "tare.moobench"
SIMPLE = f"{PACKAGE}.MonitoredClassSimple"
AGENT = native("java", "tare-log-agent.jar")
CALLS = 2_000_000
FEWER, FEWEST = 200_000, 10_000
"""For what takes longer, so that all fit into an hour."""
PEERS = ROOT / "target" / "peers" / "bin"
Family = Literal["", "tare", "cloudprofiler-like", "kieker", "opentelemetry", "flight recorder"]


@dataclass(frozen=True)
class Configuration:
    """Options of the JVM name {folder}, {port} and {library}, where its events go.

    `events` are what a call logs: 2 where its begin and its end are told apart, 0 where none are
    written.
    """

    name: str
    family: Family = ""
    jvm: tuple[str, ...] = ()
    events: int = 0
    sink: Sinks = sinks.nowhere
    application: str = SIMPLE
    variables: Mapping[str, str] = field(default_factory=dict)
    calls: int = CALLS

    @property
    def is_peer(self) -> bool:
        """Whether its events are written, by others. Threads that spin are no fair peer here."""
        return self.family not in ("", "tare") and self.events > 0 and "spinning" not in self.name

    @property
    def missing(self) -> str:
        """What is not installed that it needs, or ""."""
        of_peer = any(str(PEERS) in option for option in self.jvm)
        if not of_peer or (PEERS / f"{self.family}.jar").is_file():
            return ""
        return f"{self.family} is not installed: setup/install-peers {self.family}"


def _tare(
    handler: str, codec: str = "any", policy: str = "wait", calls: int = CALLS
) -> Configuration:
    properties = {"handler": handler, "codec": codec, "policy": policy}
    return Configuration(
        f"tare, {_called(handler, codec)}{', drop' * (policy == 'drop')}",
        "tare",
        tuple(f"-D{PACKAGE}.{key}={value}" for key, value in properties.items()),
        0 if handler == "null" else 2,
        sinks.collector,
        f"{PACKAGE}.MonitoredClassTare",
        calls=calls,
    )


def _called(handler: str, codec: str) -> str:
    return handler if codec in ("any", "uncompressed") else codec


def _cloudprofiler_like(spins: bool) -> Configuration:
    return Configuration(
        f"cloudprofiler-like, {'spinning' if spins else 'asleep'}",
        "cloudprofiler-like",
        (
            f"-D{PACKAGE}.library={{library}}",
            f"-D{PACKAGE}.folder={{folder}}",
            f"-D{PACKAGE}.spins={str(spins).lower()}",
        ),
        2,
        sinks.compressed_blocks,
        f"{PACKAGE}.MonitoredClassCloudprofilerLike",
        calls=FEWER if spins else CALLS,
    )


def _kieker(
    name: str, *options: str, events: int = 0, sink: Sinks = sinks.nowhere, calls: int = CALLS
) -> Configuration:
    return Configuration(
        f"kieker, {name}",
        "kieker",
        (
            f"-javaagent:{PEERS / 'kieker.jar'}",
            "-Dkieker.monitoring.name=KIEKER-BENCHMARK",
            "-Dkieker.monitoring.adaptiveMonitoring.enabled=false",
            "-Dkieker.monitoring.periodicSensorsExecutorPoolSize=0",
            *(f"-Dkieker.monitoring.{option}" for option in options),
        ),
        events,
        sink,
        variables={"KIEKER_SIGNATURES_INCLUDE": f"* {SIMPLE}.*()"},
        calls=calls,
    )


_DUMP = "writer=kieker.monitoring.writer.dump.DumpWriter"
_FILES = (
    "writer=kieker.monitoring.writer.filesystem.FileWriter",
    "writer.filesystem.FileWriter.customStoragePath={folder}",
)
_QUEUE = "core.controller.WriterController"
_SOCKET = "writer.tcp.SingleSocketTcpWriter"


def _opentelemetry(
    name: str, *options: str, events: int = 0, sink: Sinks = sinks.nowhere, calls: int = CALLS
) -> Configuration:
    return Configuration(
        f"opentelemetry, {name}",
        "opentelemetry",
        (
            f"-javaagent:{PEERS / 'opentelemetry.jar'}",
            "-Dotel.resource.attributes=service.name=moobench",
            f"-Dotel.instrumentation.methods.include={SIMPLE}[{METHOD}]",
            "-Dotel.metrics.exporter=none",
            "-Dotel.logs.exporter=none",
            *(f"-Dotel.{option}" for option in options),
        ),
        events,
        sink,
        calls=calls,
    )


CONFIGURATIONS = (
    Configuration("no instrumentation"),
    _tare("null"),
    _tare("id", calls=FEWEST),
    _tare("buffered", "uncompressed"),
    _tare("buffered", "zstd"),
    _tare("buffered", "zstd", "drop"),
    _tare("buffered", "lz4"),
    _tare("buffered", "lzo1x"),
    Configuration(
        "tare, agent",
        "tare",
        (f"-javaagent:{AGENT}=include={SIMPLE}#{METHOD},policy=wait",),
        2,
        sinks.collector,
    ),
    _cloudprofiler_like(spins=False),
    _cloudprofiler_like(spins=True),
    _kieker("deactivated", "enabled=false", _DUMP),
    _kieker(
        "no collection",
        _DUMP,
        f"{_QUEUE}.RecordQueueFQN=kieker.monitoring.writer.dump.DumpQueue",
    ),
    _kieker(
        "text file",
        *_FILES,
        "writer.filesystem.FileWriter.logStreamHandler=kieker.monitoring.writer.filesystem.TextLogStreamHandler",
        events=1,
        sink=sinks.lines_with(f".{METHOD}(".encode(), "kieker-*/*.dat"),
        calls=FEWER,
    ),
    _kieker(
        "binary file",
        *_FILES,
        "writer.filesystem.FileWriter.logStreamHandler=kieker.monitoring.writer.filesystem.BinaryLogStreamHandler",
        "writer.filesystem.FileWriter.bufferSize=8192",
        # As in MooBench's scripts; with the usual one, two threads may wait for each other forever.
        f"{_QUEUE}.QueuePutStrategy=kieker.monitoring.queue.putstrategy.YieldPutStrategy",
        events=1,
        sink=sinks.kieker_files,
    ),
    _kieker(
        "TCP",
        "writer=kieker.monitoring.writer.tcp.SingleSocketTcpWriter",
        f"{_SOCKET}.hostname={receivers.LOCAL}",
        f"{_SOCKET}.port={{port}}",
        events=1,
        sink=receivers.kieker_receiver,
    ),
    _opentelemetry("no logging", "traces.exporter=logging", "traces.sampler=always_off"),
    _opentelemetry(
        "logging",
        "traces.exporter=logging",
        events=1,
        sink=sinks.lines_with(f".{METHOD}' : ".encode(), OUTPUT),
        calls=FEWEST,
    ),
    _opentelemetry(
        "Zipkin",
        "traces.exporter=zipkin",
        f"exporter.zipkin.endpoint=http://{receivers.LOCAL}:{{port}}/api/v2/spans",
        events=1,
        sink=receivers.zipkin_server,
    ),
    _opentelemetry(
        "OTLP",
        "traces.exporter=otlp",
        "exporter.otlp.protocol=http/protobuf",
        f"exporter.otlp.endpoint=http://{receivers.LOCAL}:{{port}}",
        events=1,
        sink=receivers.otlp_receiver,
    ),
    Configuration(
        "flight recorder",
        "flight recorder",
        (
            "-XX:StartFlightRecording=filename={folder}/recorded.jfr,settings=none",
            "-XX:FlightRecorderOptions=stackdepth=1",
        ),
        1,
        sinks.recording,
        f"{PACKAGE}.MonitoredClassFlightRecorder",
    ),
)  # fmt: skip
BY_NAME = {configuration.name: configuration for configuration in CONFIGURATIONS}
