# SPDX-License-Identifier: Apache-2.0
"""Every fuzz target for some time, with AddressSanitizer."""

import re
import shutil
import subprocess
import sys

from bench.results import ROOT, renew

FUZZ = ["cargo", "+nightly", "fuzz"]
MUTATIONS_PER_INPUT = 100
"""`ROUNDS` of fuzz_targets/log_live.rs."""


def run(seconds: int, file_seconds: int, mutations: int) -> None:
    """Runs each target so many seconds, that of log files as long as it is to be, and that of a
    live segment for so many mutations unless they are 0; raises CalledProcessError at the first
    that fails."""
    if shutil.which("cargo-fuzz") is None or not has_nightly():
        print("fuzzing is left out: it needs a nightly toolchain and cargo-fuzz", file=sys.stderr)
        return
    folder = ROOT / "fuzz"
    listed = subprocess.check_output([*FUZZ, "list"], cwd=folder, text=True).split()
    rows = [
        "| target | inputs run | inputs kept | edges covered | failures |",
        "|---|---|---|---|---|",
    ]
    for target in listed:
        limit = file_seconds if target == "log_file" else seconds
        is_counted = target == "log_live" and mutations > 0
        runs = f"-runs={mutations // MUTATIONS_PER_INPUT}"
        options = [runs if is_counted else f"-max_total_time={limit}", "-print_final_stats=1"]
        # Of any length from the beginning: a file with something in it has some hundred bytes.
        command = [*FUZZ, "run", target, "--", *options, "-len_control=0"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.stderr.write(done.stderr[-5000:])
            done.check_returncode()
        seen = re.findall(r"cov: (\d+) ft: \d+ corp: (\d+)", done.stderr)
        assert seen, f"{target}: no input got anywhere"
        last = seen[-1]
        inputs = re.search(r"number_of_executed_units: (\d+)", done.stderr)
        assert inputs
        rows.append(f"| {target} | {int(inputs[1]):,} | {last[1]} | {last[0]} | 0 |")
        print(rows[-1], flush=True)
    renew(
        "fuzz",
        "Fuzzing with AddressSanitizer",
        f"python -m tests.soak fuzz --seconds {seconds} --file-seconds {file_seconds}"
        f" --mutations {mutations}",
        "\n".join(rows),
    )


def has_nightly() -> bool:
    """Whether there is a nightly toolchain, which sanitizers need."""
    if shutil.which("rustup") is None:
        return False
    command = ["rustup", "run", "nightly", "rustc", "--version"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
