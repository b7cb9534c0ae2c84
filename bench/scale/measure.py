# SPDX-License-Identifier: Apache-2.0
"""How long comparisons of many requests take, and in how much memory."""

import json
import re
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from bench.cases import FOLDER, Case, publish
from bench.scale.data import AT, RUNS, as_result, experiment_of, write
from scipy import stats

from tare.samples.engines import describe
from tare.samples.model import REQUEST
from tare.samples.sql.engine import connect
from tare.stats.distances import between
from tare.verdict import judge

MILLION = 1_000_000
SIZES = {"1m": MILLION, "10m": 10 * MILLION, "100m": 100 * MILLION}
BILLION = "1b"
TIMES = 10
"""A billion requests are the files of the largest size, read so often."""
HELD = 2 * MILLION
"""Requests of either run that SciPy compares."""
PAIRS = 3
FILES, ROWS, TRIES = 16, 10_000, 5
TARE = """
import atexit, pathlib, runpy, sys
atexit.register(lambda: sys.stderr.write(pathlib.Path("/proc/self/status").read_text()))
runpy.run_module("tare", run_name="__main__")
"""
"""`tare`, and what Linux says of its process at the end."""


def run(quick: bool) -> bool:
    """Measures all cases; returns whether all bars are met."""
    command = f"{'BENCH=quick ' * quick}make bench-scale"
    about = f"Runs of {RUNS // 2} blocks of two conditions, one 3 % slower, from Parquet files."
    return publish("scale", cases(quick), command, about)


def cases(quick: bool) -> list[Case]:
    """Time and memory of exact and binned comparisons, and of one pair beside SciPy."""
    found = [_beside_scipy(), _small_files()]
    for name, requests in SIZES.items():
        with TemporaryDirectory() as folder:
            write(Path(folder), requests)
            found += _compared(name, folder, 1)
            found += _whole_command(name, Path(folder))
            if requests == max(SIZES.values()) and not quick:
                found += _compared(BILLION, folder, TIMES)
    return found + (_committed() if quick else [])


def _compared(name: str, folder: str, times: int) -> list[Case]:
    found = []
    for kind in ("exact", "histogram"):
        done = subprocess.run(
            [sys.executable, "-m", "bench.scale.measure", kind, folder, str(times)],
            check=True,
            capture_output=True,
            text=True,
        )
        measured = json.loads(done.stdout)
        suffix = "" if kind == "exact" else "-histogram"
        for unit, what in (("s", ""), ("GiB", "-memory")):
            found.append(
                Case(
                    f"scale-{name}{suffix}{what}",
                    f"tare, {kind}",
                    "",
                    unit,
                    [measured[unit]],
                    note=measured["note"] if unit == "s" else "",
                )
            )
    return found


def _whole_command(name: str, files: Path) -> list[Case]:
    """What a user waits for, from the start of the process to its end, and what it holds."""
    result = files / "result"
    as_result(files, result)
    begun = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", TARE, "compare", "--json", str(result)],
        check=False,
        capture_output=True,
        text=True,
    )
    seconds = time.perf_counter() - begun
    if done.returncode:
        raise SystemExit(f"tare compare {result}: exit code {done.returncode}")
    (primary,) = (
        comparison
        for comparison in json.loads(done.stdout)["comparisons"]
        if comparison["role"] == "primary"
    )
    note = (
        f"the whole `tare compare --json` of the same requests: warm-up, all cuts, verdict:"
        f" {primary['verdict']}"
    )
    subject = "tare compare --json"
    return [
        Case(f"scale-{name}-command", subject, "", "s", [seconds], note=note),
        Case(f"scale-{name}-command-memory", subject, "", "GiB", [peak(done.stderr)]),
    ]


def peak(status: str) -> float:
    """The GiB that a process held at most, by its /proc/PID/status.

    `ru_maxrss` stays over exec: it has what the process held that it was forked from.
    """
    (kib,) = re.findall(r"^VmHWM:\s*(\d+) kB$", status, re.MULTILINE)
    return int(kib) / 2**20


def _small_files() -> Case:
    """CPU time of the whole command on two folders of small CSV files."""
    generator = np.random.default_rng(16)
    seconds = []
    with TemporaryDirectory() as name:
        folders = [Path(name, condition) for condition in ("old", "new")]
        for folder, factor in zip(folders, (1, 1.03), strict=True):
            folder.mkdir()
            for run in range(FILES // 2):
                times = factor * np.exp(generator.normal(7, 0.4, ROWS))
                lines = "\n".join(f"{took:.3f}" for took in times)
                (folder / f"{run}.csv").write_text(f"latency_us\n{lines}\n")
        options = ["--columns", "duration=latency_us", "--unit", "us"]
        command = [sys.executable, "-m", "tare", "compare", *map(str, folders), *options]
        for _ in range(TRIES):
            before = _children_cpu_seconds()
            subprocess.run(command, check=True, capture_output=True)
            seconds.append(_children_cpu_seconds() - before)
    note = f"{FILES} CSV files of {ROWS:,} rows"
    return Case("scale-16-files-cpu", "tare compare", "", "s of CPU", seconds, note=note)


def _children_cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _beside_scipy() -> Case:
    """Kolmogorov-Smirnov and Anderson-Darling of two runs in memory."""
    generator = np.random.default_rng(7)
    ours, theirs = [], []
    for _ in range(PAIRS):
        first, second = np.exp(generator.normal(13.6, 0.6, (2, HELD))).astype(np.int64)
        begun = time.perf_counter()
        found = between([first, second])
        ours.append(time.perf_counter() - begun)
        begun = time.perf_counter()
        ks = stats.ks_2samp(first, second, method="asymp").statistic
        ad = stats.anderson_ksamp([first, second], variant="midrank").statistic
        theirs.append(time.perf_counter() - begun)
        if not np.allclose([found["ks"][0, 1], found["ad"][0, 1]], [ks, ad], rtol=1e-9):
            raise SystemExit(f"scale-scipy: {found} is not {ks}, {ad}")
    return Case(
        "scale-scipy",
        "tare",
        "ks_2samp and anderson_ksamp",
        "s",
        ours,
        theirs,
        f"two runs of {HELD:,} requests",
    )


def _committed() -> list[Case]:
    """The billion of the last whole bench."""
    results = FOLDER / "scale" / "results.jsonl"
    if not results.exists():
        raise SystemExit(f"{results}: not there; make bench-scale without BENCH=quick writes it")
    rows = map(json.loads, results.read_text().splitlines())
    return [
        Case(row["case"], row["subject"], "", row["unit"], [row["value"]], note=f"run {row['run']}")
        for row in rows
        if row["case"].startswith(f"scale-{BILLION}")
    ]


def main(kind: str, folder: str, times: str) -> None:
    """Compares the files of a folder and prints how long it took and what was held at most."""
    begun = time.perf_counter()
    files: Sequence[str] = sorted(map(str, Path(folder).glob("*.parquet"))) * int(times)
    samples = connect().read_parquet(files).rename(latency_ns="duration_ns")
    described = describe(samples, AT, exact=kind == "exact")
    judged = judge(experiment_of(described))
    seconds = time.perf_counter() - begun
    requests = sum(group.requests for group in described.groups.values())
    word = next(
        comparison.verdict for comparison in judged.comparisons if comparison.metric == "p50"
    )
    note = f"{requests:,} requests in {len(described.groups)} runs: {word}"
    if int(times) > 1:
        note += (
            f"; the files of {requests // int(times):,} requests read {times} times: no more"
            " distinct latencies than they have"
        )
    if not described.exact:
        note += f"; no KS statistic is off by more than {described.ks_error[REQUEST]:.2g}"
    held = peak(Path("/proc/self/status").read_text())
    print(json.dumps({"s": seconds, "GiB": held, "note": note}))


if __name__ == "__main__":
    main(*sys.argv[1:])
