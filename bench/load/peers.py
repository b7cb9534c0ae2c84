# SPDX-License-Identifier: Apache-2.0
"""Open-loop generators of others, each on one CPU: how it is called, and the p99 it prints."""

import csv
import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.results import ROOT
from bench.turns import on_cpu

TOOLS = ROOT / "target" / "peers" / "bin"
LOAD_CPU = 1
K6_SCRIPT = """
import http from 'k6/http';
export const options = {
  discardResponseBodies: true,
  summaryTrendStats: ['p(99)'],
  scenarios: { open: { executor: 'constant-arrival-rate', rate: RATE, timeUnit: '1s',
    duration: 'SECONDSs', preAllocatedVUs: USERS, maxVUs: USERS } },
};
export default function () { http.get('URL'); }
export function handleSummary(data) {
  const { http_req_duration: took, http_reqs: sent } = data.metrics;
  return { stdout: JSON.stringify([took.values['p(99)'] / 1e3, sent.values.rate]) };
}
"""


@dataclass(frozen=True)
class Asked:
    """The load: `rate` requests a second on `users` connections."""

    url: str
    rate: int
    users: int
    seconds: int
    folder: Path


@dataclass(frozen=True)
class Peer:
    """A generator that may be installed."""

    name: str
    arguments: Callable[[Asked], list[str]]
    read: Callable[[str, Asked], tuple[float, float]]
    """Reads the 99th percentile in seconds, and requests a second, from what it printed."""
    from_schedule: bool = False
    """Whether that percentile is counted from when a request should have started, as ours can be:
    else from when it did."""

    def command(self, asked: Asked) -> list[str]:
        """The call that sends the load."""
        program = [path(self.name), *self.arguments(asked)]
        return on_cpu(LOAD_CPU, ["env", "GOMAXPROCS=1", *program])


def found() -> list[Peer]:
    """The generators that this machine has."""
    return [peer for peer in PEERS if shutil.which(path(peer.name))]


def path(name: str) -> str:
    """A tool built for the benches, or the system's."""
    built = TOOLS / name
    return str(built) if os.access(built, os.X_OK) else name


def number(pattern: str, text: str) -> float:
    """The number that a pattern finds in what a tool printed."""
    match = re.search(pattern, text)
    if match is None:
        raise SystemExit(f"no '{pattern}' in: {text[-500:]}")
    return float(match[1])


def _oha(asked: Asked) -> list[str]:
    load = ["-q", str(asked.rate), "-c", str(asked.users), "-z", f"{asked.seconds}s"]
    return ["--no-tui", "--output-format", "csv", *load, asked.url]


def _fortio(asked: Asked) -> list[str]:
    options = ["-qps", str(asked.rate), "-c", str(asked.users), "-t", f"{asked.seconds}s"]
    return ["load", "-quiet", "-json", "-", *options, "-p", "99", "-r", "1e-6", asked.url]


def _k6(asked: Asked) -> list[str]:
    words = {"URL": asked.url, "RATE": asked.rate, "SECONDS": asked.seconds, "USERS": asked.users}
    script = K6_SCRIPT
    for word, value in words.items():
        script = script.replace(word, str(value))
    file = asked.folder / "k6.js"
    file.write_text(script)
    return ["run", "--quiet", "--no-usage-report", str(file)]


def _read_oha(out: str, asked: Asked) -> tuple[float, float]:
    # Its own correction counts from when its timer has woken up, however late that was.
    import numpy as np

    rows = csv.DictReader(out.splitlines())
    times = [(float(row["request-start"]), float(row["request-duration"])) for row in rows]
    start, duration = np.array(sorted(times)).T
    intended = np.arange(start.size) / asked.rate
    ends = start + duration
    return float(np.quantile(ends - intended, 0.99)), start.size / float(ends.max())


def _read_fortio(out: str, _: Asked) -> tuple[float, float]:
    found = json.loads(out)
    return found["DurationHistogram"]["Percentiles"][0]["Value"], found["ActualQPS"]


def _read_k6(out: str, _: Asked) -> tuple[float, float]:
    p99, rate = json.loads(out)
    return p99, rate


PEERS = (
    Peer("oha", _oha, _read_oha, from_schedule=True),
    Peer("fortio", _fortio, _read_fortio),
    Peer("k6", _k6, _read_k6),
)
