# SPDX-License-Identifier: Apache-2.0
"""`tare` becomes the native program before it imports anything: nothing of Python stays."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tare.__main__ import NATIVE_COMMANDS
from tare.native import native


def test_a_native_command_imports_only_os_signal_and_sys() -> None:
    script = (
        "import signal, sys; old = {*sys.modules}; import tare.__main__;"
        " print(*{*sys.modules} - old)"
    )
    printed = subprocess.check_output([sys.executable, "-c", script], text=True)
    assert set(printed.split()) == {"tare", "tare.__main__", "tare.native"}


def test_a_native_command_replaces_the_process() -> None:
    for name, program in NATIVE_COMMANDS.items():
        first, *words = [*name.split(), "--help"]
        through_tare = [sys.executable, "-m", "tare", first, *words]
        assert subprocess.check_output(through_tare) == subprocess.check_output(
            [native("bin", program), *words]
        )


def test_a_native_command_finds_the_signals_as_they_were() -> None:
    """Python ignores SIGPIPE and SIGXFSZ; a program under the hook must not inherit that."""
    tail = ["--", "grep", "SigIgn", "/proc/self/status"]
    through_tare = subprocess.check_output([sys.executable, "-m", "tare", "hook", *tail])
    assert through_tare == subprocess.check_output([native("bin", "tare-hook"), *tail])


def test_a_native_command_after_two_dashes() -> None:
    command = [sys.executable, "-m", "tare", "--", "hook", "--", "echo", "--", "hello"]
    assert subprocess.check_output(command, text=True) == "-- hello\n"


def test_help_imports_nothing_heavy() -> None:
    heavy = ["duckdb", "ibis", "matplotlib", "numpy", "pandas", "pyarrow", "pydantic", "scipy"]
    script = f"import sys, tare.cli; print(*set(sys.modules) & set({heavy}))"
    assert not subprocess.check_output([sys.executable, "-c", script], text=True).split()


@pytest.mark.parametrize("word", ["--json", "--engine=spark"])
def test_only_engines_import_pandas(word: str) -> None:
    """pyarrow does at the first value that it makes, where it can."""
    script = (
        f"import sys, tare.without_pandas as without; without.leave_out(['compare', '{word}']);"
        " import pyarrow; pyarrow.scalar(1); print('pandas' in sys.modules)"
    )
    printed = subprocess.check_output([sys.executable, "-c", script], text=True)
    assert printed == f"{word != '--json'}\n"


def test_a_native_part_that_was_not_built_is_one_line(tmp_path: Path) -> None:
    copy = tmp_path / "tare"
    copy.mkdir()
    package = Path(native("bin", "")).parents[1]
    for file in ("__init__.py", "__main__.py", "native.py"):
        (copy / file).write_text((package / file).read_text())
    command = [sys.executable, "-m", "tare", "load", "http"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "make native" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_calibrate_refuses_a_folder_before_it_imports_scipy(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    asked = ["--service", "true {port}", "--condition", "one=env:A=1"]
    subprocess.run([sys.executable, "-m", "tare", "init", str(plan), *asked], check=True)
    with plan.open("a") as file:
        file.write("[calibration]\nvariable = 'BUSY'\n")
    script = "import sys, tare.cli\ntry: tare.cli.main()\nfinally: print('scipy' in sys.modules)"
    options = ["calibrate", str(plan), "--blocks", "6", "--out", str(tmp_path)]
    command = [sys.executable, "-c", script, *options]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert "is not empty" in done.stderr
    assert done.stdout == "False\n"
