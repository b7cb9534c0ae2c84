# SPDX-License-Identifier: Apache-2.0
"""Writes result folders with random data, by the same contract as the lab."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tare.tables import arrow_schema

SLICE_NS = 5_000_000
START_NS = 1_763_758_000_000_000_000
LOG_TAIL = [
    "2026/11/21 20:51:07 [notice] 4711#4711: signal process started",
    "2026/11/21 20:51:07 [emerg] 4711#4711: bind() to 127.0.0.1:18080 failed (98: in use)",
    "2026/11/21 20:51:07 [emerg] 4711#4711: still could not bind()",
]


@dataclass
class Synthetic:
    """What to make up; `effects` maps each condition to its relative slow-down."""

    name: str = "hook-nginx"
    effects: Mapping[str, float] = field(
        default_factory=lambda: {"plain": 0.0, "hook": 0.062, "twin": 0.002}
    )
    environments: Sequence[str] = ("host",)
    blocks: int = 8
    requests: int = 20_000
    kind: str = "both"
    hooked: Sequence[str] = ("hook",)
    control: bool = False
    """Whether every block runs the baseline once more."""
    warm_up: float = 0.0
    """Share of each run whose requests take twice as long."""
    design: str = "interleaved"
    readings: int = 0
    """Readings per second of machine and service in each run."""
    spans: Mapping[str, float] = field(default_factory=dict)
    """Parts of each request, as shares of it."""
    invalid: Sequence[int] = (5,)
    warnings: Sequence[str] = (
        "3.1 % of the slices were hit by steal and left out in pairs.",
        "The clock source is kvm-clock; the hook's own times were read from the TSC.",
    )
    reason: str = "the service was not ready within 10 s: port 18080 was in use"
    log_tail: Sequence[str] = tuple(LOG_TAIL)
    seed: int = 7

    def write(self, folder: Path) -> Path:
        """Writes the folder, without `verdicts.json`, and returns it."""
        random = np.random.default_rng(self.seed)
        folder.mkdir(parents=True, exist_ok=True)
        runs, order, number = [], [], 0
        for environment_number, environment in enumerate(self.environments):
            for block in range(1, self.blocks + 1):
                drift = random.normal(0, 0.03)
                every = [*self.effects, *([self.again] if self.control else [])]
                conditions = [str(name) for name in random.permutation(every)]
                order.append({"block": block, "environment": environment, "conditions": conditions})
                for condition in conditions:
                    number += 1
                    run = self._run(number, block, environment, condition)
                    level = 58_000 * (1 + 0.4 * environment_number) * (1 + drift)
                    level *= (1 + self.effects.get(condition, 0.0)) * (1 + random.normal(0, 0.008))
                    self._samples(folder, run, level, random)
                    if condition in self.hooked and run["valid"]:
                        self._costs(folder, run, random)
                    runs.append(run)
        (folder / "manifest.json").write_text(json.dumps(self._manifest(runs, order), indent=1))
        (folder / "plan.toml").write_text(
            f'name = "{self.name}"\nkind = "{self.kind}"\nblocks = {self.blocks}\n'
        )
        return folder

    @property
    def again(self) -> str:
        """The baseline's second name."""
        return f"{next(iter(self.effects))}~again"

    def _run(self, number: int, block: int, environment: str, condition: str) -> dict[str, Any]:
        valid = number not in self.invalid
        hooked = condition in self.hooked
        return {
            "run": number,
            "block": block,
            "environment": environment,
            "condition": condition,
            "valid": valid,
            "reason": None if valid else self.reason,
            "log_tail": [] if valid else list(self.log_tail),
            "started_ns": START_NS + number * 10_000_000_000,
            "duration_ns": 8_000_000_000,
            "requests": self.requests,
            "errors": 0,
            "endpoint": "http://127.0.0.1:18080/",
            "cpu": {
                "service_ns_per_request": 21_300.0 + 1_900 * hooked + 100 * (block % 3),
                "generator_ns_per_request": 9_800.0 + 40 * (block % 5),
            },
        }

    def _samples(
        self, folder: Path, run: dict[str, Any], level: float, random: np.random.Generator
    ) -> None:
        count = self.requests
        body = random.gamma(20, 0.01, count) + 0.8
        tail = random.random(count) < 0.012
        body[tail] *= 1 + random.pareto(1.6, int(tail.sum()))
        body[: int(self.warm_up * count)] *= 2
        duration = (level * body).astype(np.int64)
        slices = (np.arange(count) // 40 * len(self.effects)).astype(np.int32)
        start = run["started_ns"] + slices.astype(np.int64) * SLICE_NS
        start += (np.arange(count) % 40) * (SLICE_NS // 40)
        columns = {
            "environment": np.full(count, run["environment"]),
            "span": np.full(count, "request"),
            "seq": np.arange(count),
            "slice": slices,
            "source": np.full(count, "client"),
            "start_ns": start,
            "intended_ns": start,
            "duration_ns": duration,
            "ok": np.ones(count, dtype=bool),
            "status": np.full(count, 200, dtype=np.int32),
        }
        parts = [
            columns
            | {"span": np.full(count, name), "duration_ns": (duration * share).astype(np.int64)}
            for name, share in self.spans.items()
        ]
        whole = {
            name: np.concatenate([part[name] for part in (columns, *parts)]) for name in columns
        }
        write_table(folder, "samples", run, whole)

        times = np.unique(slices)
        steal = np.where(random.random(len(times)) < 0.03, 2e6, 0.0)
        machine = {
            "environment": np.full(len(times), run["environment"]),
            "slice": times,
            "start_ns": run["started_ns"] + times.astype(np.int64) * SLICE_NS,
            "duration_ns": np.full(len(times), SLICE_NS),
            "subject": np.full(len(times), "machine"),
            "metric": np.full(len(times), "steal"),
            "value": steal,
            "unit": np.full(len(times), "ns"),
        }
        if self.readings:
            per_second = self._per_second(run, random)
            machine = {name: [*machine[name], *per_second[name]] for name in machine}
        write_table(folder, "machine", run, machine)

    def _per_second(self, run: dict[str, Any], random: np.random.Generator) -> dict[str, list[Any]]:
        """Readings of some metrics; the service of a hooked condition has 10 MB more memory."""
        hooked = run["condition"] in self.hooked
        levels = {
            ("machine", "memory_applications"): 8e8, ("machine", "memory_used"): 1e9,
            ("machine", "memory_total"): 4e9, ("machine", "frequency"): 2.4e9,
            ("machine", "clock_offset"): -12_000.0, ("machine", "clock_error"): 80_000.0,
            ("service", "memory"): 5e7 + 1e7 * hooked,
        }  # fmt: skip
        times = {"cpu_user": 4e8, "cpu_system": 2e8, "cpu_irq": 1e7, "cpu_iowait": 0.0,
                 "steal": 1e7, "cpu_idle": 1.38e9}  # fmt: skip
        levels |= {("machine", metric): ns for metric, ns in times.items()}
        levels |= {
            ("machine", "network_received"): 0.0, ("machine", "network_transmitted"): 0.0,
            ("machine", "context_switches"): 20_000.0, ("machine", "interrupts"): 3_000.0,
            ("machine", "pressure_cpu"): 2e8, ("service", "cpu_user"): 2e8 + 5e7 * hooked,
            ("service", "cpu_system"): 1e8, ("service", "throttled_time"): 0.0,
        }  # fmt: skip
        rows = [
            (run["environment"], None, run["started_ns"] + second * 1_000_000_000, 1_000_000_000,
             subject, metric, value * random.uniform(0.98, 1.02), None)
            for second in range(self.readings)
            for (subject, metric), value in levels.items()
        ]  # fmt: skip
        names = ("environment", "slice", "start_ns", "duration_ns", "subject", "metric", "value",
                 "unit")  # fmt: skip
        return {name: [row[at] for row in rows] for at, name in enumerate(names)}

    def _costs(self, folder: Path, run: dict[str, Any], random: np.random.Generator) -> None:
        rows: list[tuple[str, str, int | None, int | None, int]] = []
        for function, median, calls in (
            ("recv", 210, self.requests),
            ("writev", 350, self.requests),
            ("read", 90, 90),
        ):
            values = random.lognormal(np.log(median), 0.25, calls)
            edges = np.unique(np.geomspace(20, 20_000, 400).astype(np.int64))
            counts, _ = np.histogram(values, edges)
            for low, high, n in zip(edges[:-1], edges[1:] - 1, counts, strict=True):
                if n:
                    rows.append((function, "own_time", int(low), int(high), int(n)))
            on_socket = function != "read"
            rows.append((function, "calls_socket", None, None, calls * on_socket))
            rows.append((function, "calls_other", None, None, calls * (not on_socket)))
            rows.append((function, "bytes_searched", None, None, calls * 180 * on_socket))
        functions, metrics, lows, highs, counted = zip(*rows, strict=True)
        columns = {
            "environment": [run["environment"]] * len(rows),
            "layer": ["hook"] * len(rows),
            "function": functions,
            "metric": metrics,
            "low_ns": lows,
            "high_ns": highs,
            "count": counted,
        }
        write_table(folder, "costs", run, columns)

    def _manifest(self, runs: list[dict[str, Any]], order: list[dict[str, Any]]) -> dict[str, Any]:
        return {
            "format": 1,
            "experiment": f"{self.name}-20261121T204500-ab12",
            "name": self.name,
            "kind": self.kind,
            "design": self.design,
            "slice_ns": SLICE_NS,
            "primary": "p50",
            "budget": 0.03,
            "alpha": 0.05,
            "baseline": next(iter(self.effects)),
            "control": self.again if self.control else None,
            "conditions": [
                {"name": name, "layers": [{"type": "hook"}] if name in self.hooked else []}
                for name in self.effects
            ],
            "environments": list(self.environments),
            "seed": self.seed,
            "blocks": self.blocks,
            "started": "2026-11-21T20:45:00Z",
            "finished": "2026-11-21T20:47:12Z",
            "tare": "0.1.0",
            "order": order,
            "placement": {
                "service": [0],
                "generator": [1],
                "why": "different cores, so that the generator does not take the service's time",
            },
            "load": {"kind": "http", "mode": "closed", "users": 1, "capacity": None},
            "machine": {
                "cpu_model": "Example CPU @ 2.40GHz",
                "cpus": 2,
                "kernel": "6.1.0-18-amd64",
                "clock_source": "kvm-clock",
                "hypervisor": "kvm",
                "memory_bytes": 25_000_000_000,
            },
            "warnings": list(self.warnings),
            "runs": runs,
        }


def write_table(folder: Path, table: str, run: dict[str, Any], columns: Mapping[str, Any]) -> None:
    """Writes the rows of one run into a table of a result folder."""
    schema = arrow_schema(table)
    schema = pa.schema([schema.field(name) for name in columns])
    arrays = [
        pa.array(values).dictionary_encode()
        if pa.types.is_dictionary(schema.field(name).type)
        else pa.array(values, schema.field(name).type)
        for name, values in columns.items()
    ]
    place = folder / table / f"condition={run['condition']}" / f"block={run['block']}"
    place = place / f"run={run['run']}"
    place.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), place / f"{table}.parquet")
