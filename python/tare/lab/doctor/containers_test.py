# SPDX-License-Identifier: Apache-2.0
import json
import subprocess
from pathlib import Path

from tare.lab.doctor.containers import _write_bundle


def test_the_bundles_program_runs_on_this_machine(tmp_path: Path) -> None:
    _write_bundle(tmp_path / "bundle")
    config = json.loads((tmp_path / "bundle/config.json").read_text())
    root = tmp_path / "bundle" / config["root"]["path"]
    program = root / config["process"]["args"][0].lstrip("/")
    assert subprocess.run([program], check=False).returncode == 0
