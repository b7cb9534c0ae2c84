# SPDX-License-Identifier: Apache-2.0
"""A result folder in which every kind of value occurs, and commands on a changed copy of it."""

import json
import shutil
import sys
import tomllib
from contextlib import chdir
from pathlib import Path
from typing import Any
from zlib import crc32

import tomli_w
from tests.in_process import Done, tare

PLAN = """
name = "hostile"
budget = "3%"
blocks = 1
smoke = true
seed = 1
[service]
command = "PYTHON -I -m http.server --bind {address} {port}"
ready = { http = "/" }
[load]
duration = "100ms"
warmup = "0s"
[[conditions]]
name = "one"
[[conditions]]
name = "two"
layers = [{ type = "env", variables = { A = "1" } }]
""".replace("PYTHON", sys.executable)
# What a short experiment does not have.
MORE: dict[str, dict[str, Any]] = {
    "manifest.json": {
        "limits": [
            {
                "environment": "host",
                "span": "request",
                "statistic": "p50",
                "undetected_ns": 300.0,
                "shares": {"0": 0.1, "50000": 1.0},
                "date": "2026-11-21",
            }
        ],
    },
    "verdicts.json": {
        "controls": [
            {
                "environment": "host",
                "runs": 6,
                "metric": "p50",
                "relative": 0.01,
                "p_adjusted": 0.5,
                "alarm": False,
            }
        ],
    },
}
COMPARED: dict[str, Any] = {
    "effect_sizes": {
        "cliffs_delta": 0.1,
        "vargha_delaney": 0.5,
        "hodges_lehmann": 0.01,
        "low": -0.1,
        "high": 0.1,
        "level": 0.95,
    },
    "shape": {
        "ks_p": 0.5,
        "ad_p": 0.5,
        "p_adjusted": 0.5,
        "shift": [{"q": 0.5, "relative": 0.01, "low": -0.1, "high": 0.1, "threshold": 0.03}],
        "pages": [{"requests": 10, "baseline": 0.1, "condition": 0.2}],
        "apart": [{"statistic": "ks", "within": 0.1, "between": 0.2}],
    },
    "warm_up_cuts": [
        {"name": "half", "verdict": "unchanged", "relative": 0.01, "low": -0.1, "high": 0.1}
    ],
}
COMMANDS = {
    "compare": ("compare", "result"),
    "report": ("report", "result"),
    "resume": ("run", "plan.toml", "--resume", "result"),
}
DRY_RUN = ("run", "plan.toml", "--dry-run")


def finish(folder: Path) -> None:
    folder.mkdir()
    (folder / "plan.toml").write_text(PLAN)
    with chdir(folder):
        done = tare("run", "plan.toml", "--out", "result")
    assert done.returncode == 0, done.stderr
    for name, more in MORE.items():
        content = json.loads((folder / "result" / name).read_text()) | more
        if "comparisons" in content:
            content["comparisons"][0] |= COMPARED
        (folder / "result" / name).write_text(json.dumps(content))


def restore(finished: Path, box: Path) -> None:
    shutil.rmtree(box / "result", ignore_errors=True)
    shutil.copytree(finished / "result", box / "result")


def read(path: Path) -> Any:
    text = path.read_text()
    return tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)


def write(path: Path, changed: Any) -> None:
    path.write_text(tomli_w.dumps(changed) if path.suffix == ".toml" else json.dumps(changed))


def outside(box: Path) -> dict[Path, bytes]:
    """All files but those of the result."""
    files = [path for path in box.parents[1].rglob("*") if path.is_file()]
    return {path: path.read_bytes() for path in files if box / "result" not in path.parents}


def run(box: Path, command: str) -> Done:
    """Carries a command out, which may fail in one line, and changes nothing else."""
    before = outside(box)
    with chdir(box):
        done = tare(*COMMANDS.get(command, DRY_RUN))
    assert done.returncode in (0, 1, 2, 3), done.stderr
    # Other lines tell of progress.
    complaints = [line for line in done.stderr.splitlines() if line.startswith("tare: ")]
    assert len(complaints) == (done.returncode != 0), done.stderr
    assert "Traceback" not in done.stderr
    assert not {"\x1b", "\udcff"} & {*done.stdout, *done.stderr}
    assert outside(box) == before
    return done


def any_command(*of: object) -> str:
    """Always the same for the same thing."""
    return [*COMMANDS][number(*of) % len(COMMANDS)]


def number(*of: object) -> int:
    """The same for the same thing, in every process."""
    return crc32(repr(of).encode())
