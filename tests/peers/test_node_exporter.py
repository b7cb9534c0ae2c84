# SPDX-License-Identifier: Apache-2.0
"""What the lab reads of the machine is what node_exporter shows, through a real Prometheus.

A counter is compared between two scrapes. The exporter read it at some moment of a scrape, so its
increase is between those of the samples just inside and just outside of both scrapes.
"""

import json
import os
import shutil
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.peers.programs import answer, running
from tests.waiting import wait_for

from tare.lab.environments.ports import free_port
from tare.lab.machine.clock import Clock
from tare.lab.machine.host import Host
from tare.lab.machine.sampler import Sampler

pytestmark = pytest.mark.integration
COLLECTORS = ("cpu", "meminfo", "netdev", "pressure", "stat", "timex")
SCRAPES = 8
TICK_NS = 10_000_000
SLACK_NS = 10_000_000
"""Prometheus moves the time of a scrape by up to 2 ms."""
COUNTERS = {
    "cpu_user": (1e9, 'sum(node_cpu_seconds_total{mode=~"user|nice"})'),
    "cpu_system": (1e9, 'sum(node_cpu_seconds_total{mode="system"})'),
    "cpu_irq": (1e9, 'sum(node_cpu_seconds_total{mode=~"irq|softirq"})'),
    "steal": (1e9, 'sum(node_cpu_seconds_total{mode="steal"})'),
    "context_switches": (1, "node_context_switches_total"),
    "interrupts": (1, "node_intr_total"),
    "network_loopback": (1, 'node_network_receive_bytes_total{device="lo"}'),
    "network_received": (1, "sum(node_network_receive_bytes_total{DEVICES})"),
    "network_transmitted": (1, "sum(node_network_transmit_bytes_total{DEVICES})"),
    "pressure_cpu": (1e9, "node_pressure_cpu_waiting_seconds_total"),
    "pressure_io": (1e9, "node_pressure_io_waiting_seconds_total"),
    "pressure_io_full": (1e9, "node_pressure_io_stalled_seconds_total"),
    "pressure_memory": (1e9, "node_pressure_memory_waiting_seconds_total"),
    "pressure_memory_full": (1e9, "node_pressure_memory_stalled_seconds_total"),
}
"""Units of Tare in one of Prometheus, and the query."""
LEVELS = {
    "memory_total": "node_memory_MemTotal_bytes",
    "memory_used": "node_memory_MemTotal_bytes - node_memory_MemAvailable_bytes",
    "memory_applications": "node_memory_MemTotal_bytes - node_memory_MemFree_bytes"
    " - node_memory_Buffers_bytes - node_memory_Cached_bytes - node_memory_Slab_bytes"
    " - node_memory_PageTables_bytes - node_memory_SwapCached_bytes",
}


@dataclass(frozen=True)
class Prometheus:
    """A server that scrapes the exporter once per second."""

    url: str

    def ask(self, query: str, **at: float) -> dict[str, str]:
        """The values by time: at the scrapes of a range, or now."""
        times = "".join(f"&{name}={value}" for name, value in at.items())
        kind = "query_range" if at else "query"
        found = json.loads(answer(f"{self.url}/api/v1/{kind}?query={quote(query)}{times}"))
        results = found["data"]["result"]
        return {str(time): value for series in results for time, value in series["values"]}

    def scrapes(self, since: float) -> list[tuple[float, float]]:
        """Begin and end of each scrape later than a time of day, in seconds."""
        lengths, values = (self.ask(f"{name}[10m]") for name in
                           ("scrape_duration_seconds", "node_intr_total"))  # fmt: skip
        # A scrape that took too long has no values.
        answered = ((float(time), float(of)) for time, of in lengths.items() if time in values)
        times = sorted((time, time + length) for time, length in answered)
        return [scrape for scrape in times if scrape[0] > since]

    def at(self, query: str, time: float) -> float:
        """The value of an expression at the time of a scrape."""
        (value,) = self.ask(query, start=time, end=time, step=1).values()
        return float(value)


@pytest.fixture
def prometheus(tmp_path: Path) -> Iterator[Prometheus]:
    for program in ("prometheus", "prometheus-node-exporter"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    exporter, server = free_port("127.0.0.1"), free_port("127.0.0.1")
    config = {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
        "scrape_configs": [
            {"job_name": "node", "static_configs": [{"targets": [f"127.0.0.1:{exporter}"]}]}
        ],
    }
    (tmp_path / "prometheus.yml").write_text(json.dumps(config))
    commands = (
        ["prometheus-node-exporter", f"--web.listen-address=127.0.0.1:{exporter}",
         "--collector.disable-defaults", *(f"--collector.{name}" for name in COLLECTORS),
         "--collector.netdev.device-exclude=^$"],  # Debian's excludes loopback
        ["prometheus", f"--config.file={tmp_path / 'prometheus.yml'}",
         f"--storage.tsdb.path={tmp_path / 'data'}", f"--web.listen-address=127.0.0.1:{server}"],
    )  # fmt: skip
    with ExitStack() as stack:
        for command in commands:
            stack.enter_context(running(command, tmp_path / f"{command[0]}.txt"))
        url = f"http://127.0.0.1:{server}"
        wait_for(lambda: answer(f"{url}/-/ready"), "Prometheus")
        yield Prometheus(url)


@dataclass(frozen=True)
class Readings:
    """The readings of one metric: the times of samples, and what was counted up to each."""

    times: Sequence[float]
    counts: Sequence[float]

    def before(self, time: float) -> float:
        """A count of a sample that had ended: another one followed before `time`."""
        return self.counts[max(bisect_right(self.times, time) - 2, 0)]

    def after(self, time: float) -> float:
        return self.counts[bisect_left(self.times, time)]


def readings(sampler: Sampler) -> Mapping[str, Readings]:
    rows: dict[str, list[dict[str, float]]] = {}
    for row in sampler.table({"/": "machine"}).to_pylist():
        rows.setdefault(row["metric"], []).append(row)
    found = {}
    for metric, of in rows.items():
        times, counts = [of[0]["start_ns"] / 1e9], [0.0]
        for row in of:
            times.append((row["start_ns"] + row["duration_ns"]) / 1e9)
            counts.append(counts[-1] + row["value"])
        found[metric] = Readings(times, counts)
    return found


def test_prometheus_has_the_same_readings(prometheus: Prometheus) -> None:
    host = Host(sorted(os.sched_getaffinity(0)))
    sampler = Sampler({"/": host.read})
    scrapes: list[tuple[float, float]] = []

    def enough() -> bool:
        sampler.sample()
        first = readings(sampler)["interrupts"].times
        if len(first) < 3:
            return False
        scrapes[:] = prometheus.scrapes(first[1])
        return len(scrapes) >= SCRAPES

    wait_for(enough, "scrapes")
    last = scrapes[-1][1] + 1
    while readings(sampler)["interrupts"].times[-1] < last:
        sampler.sample()
    mine = readings(sampler)
    (first_begin, first_end), (last_begin, last_end) = scrapes[0], scrapes[-1]
    slack = SLACK_NS / 1e9
    devices = "|".join(os.fsdecode(name) for name, counts in host._counted.items() if counts)
    compared = set()
    for metric, (unit, query) in COUNTERS.items():
        of = mine.get(metric)
        if of is None or len(of.times) != len(mine["interrupts"].times):
            continue  # the kernel has no pressure, or the counter went back once
        text = query.replace("{DEVICES}", f'{{device=~"{devices}"}}')
        low, high = (prometheus.at(text, time) * unit for time in (first_begin, last_begin))
        # The kernel rounds the time of each CPU down to ticks, and that of all CPUs too.
        ticks = 2 * (os.cpu_count() or 1) * TICK_NS if "node_cpu" in query else 0
        least = of.before(last_begin - slack) - of.after(first_end + slack) - ticks
        most = of.after(last_end + slack) - of.before(first_begin - slack) + ticks
        rounding = 1e-9 * high  # a float has 53 bits
        assert least - rounding <= high - low <= most + rounding, metric
        compared.add(metric)
    assert {"cpu_user", "cpu_system", "context_switches", "interrupts"} <= compared
    check_levels(prometheus, sampler, scrapes)
    check_clock(prometheus, last_begin)


def check_levels(
    prometheus: Prometheus, sampler: Sampler, scrapes: Sequence[tuple[float, float]]
) -> None:
    """Each level at a scrape is among those of the samples around it, or near them."""
    rows = sampler.table({"/": "machine"}).to_pylist()
    total = next(row["value"] for row in rows if row["metric"] == "memory_total")
    for metric, query in LEVELS.items():
        ends = [((row["start_ns"] + row["duration_ns"]) / 1e9, row["value"]) for row in rows
                if row["metric"] == metric]  # fmt: skip
        for begin, end in scrapes:
            near = [value for time, value in ends if begin - 1 <= time <= end + 1]
            room = 0 if metric == "memory_total" else 0.01 * total
            assert min(near) - room <= prometheus.at(query, begin) <= max(near) + room, metric


def check_clock(prometheus: Prometheus, time: float) -> None:
    """Both know an error of the clock, or both know that nothing synchronizes it."""
    state = Clock().state()
    is_synchronized = prometheus.at("node_timex_sync_status", time) == 1
    assert is_synchronized == (state is not None)
    if state is not None:
        limit = prometheus.at("node_timex_maxerror_seconds", time)
        assert limit == pytest.approx(state.maxerror / 1e6, abs=0.01)
