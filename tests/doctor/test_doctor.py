# SPDX-License-Identifier: Apache-2.0
"""`tare doctor` as a user meets it: as root, as nobody, for people and for programs."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from tests.waiting import SECONDS, is_running, wait_for

KEYS = ["group", "name", "state", "found", "switches_off", "get", "details"]
GROUPS = ["rights", "kernel", "environments", "time", "programs"]
NAMES = [
    "root", "capabilities", "btf", "bpf programs", "perf events", "cgroups",
    "network namespaces", "docker", "podman", "runc", "crun", "kubernetes", "kvm",
    "user-mode linux", "clock source", "invariant tsc", "no steal", "frequency control",
    "native parts", "nginx", "haproxy", "envoy", "jdk", "build tools",
]  # fmt: skip

# Imports first: a user without rights need not be able to read the folder of a clone.
AS_NOBODY = """
import json, os
from tare.lab.doctor import PROBES, examine
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
print(json.dumps([finding.to_json() for finding in examine(PROBES)]))
"""


def doctor(*options: str, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "tare", "doctor", *options],
        capture_output=True, text=True, check=False, timeout=SECONDS,
        env={**os.environ, **variables},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def check(probes: list[dict[str, object]]) -> dict[str, dict[str, object]]:
    assert [probe["name"] for probe in probes] == NAMES
    assert list(dict.fromkeys(probe["group"] for probe in probes)) == GROUPS
    for probe in probes:
        assert list(probe) == KEYS
        assert probe["state"] in ("yes", "partly", "no")
        assert probe["found"]
        assert probe["switches_off"]
        assert probe["get"]
        assert "could not look" not in str(probe["found"]), probe
    return {str(probe["name"]): probe for probe in probes}


def test_json_has_the_same_keys_on_every_machine(tmp_path: Path) -> None:
    answer = json.loads(doctor("--json", TMPDIR=str(tmp_path)))
    assert list(answer) == ["machine", "probes"]
    assert answer["machine"]["kernel"] == os.uname().release
    found = check(answer["probes"])
    assert found["root"]["details"] == {"uid": os.geteuid()}
    assert (found["root"]["state"] == "no") == (os.geteuid() != 0)
    assert list(tmp_path.iterdir()) == []


def test_sigterm_leaves_no_folder_behind(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "tare", "doctor"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "TMPDIR": str(tmp_path)},
    ) as process:  # fmt: skip
        while not list(tmp_path.iterdir()):
            assert process.poll() is None
            time.sleep(0.01)
        process.terminate()
        assert process.communicate() == (b"", b"")
    assert process.returncode == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []


def test_nobody_gets_answers_too() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to become nobody")
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, 65534, 65534)
        done = subprocess.run(
            [sys.executable, "-c", AS_NOBODY],
            capture_output=True, text=True, check=False, timeout=SECONDS,
            env={**os.environ, "TMPDIR": folder, "HOME": "/nonexistent"},
        )  # fmt: skip
        assert list(Path(folder).iterdir()) == []
    assert (done.returncode, done.stderr) == (0, "")
    found = check(json.loads(done.stdout))
    for name in ("root", "capabilities", "bpf programs", "cgroups"):
        assert found[name]["state"] == "no", found[name]
    assert found["network namespaces"]["state"] != "yes"


def test_people_see_every_probe_on_lines_that_fit() -> None:
    lines = doctor(COLUMNS="100").splitlines()
    assert all(len(line) <= 100 for line in lines)
    assert re.match(r"(All )?\d+ (of \d+ )?features work\.", lines[0])
    for name in NAMES:
        assert any(line.startswith(f"  {name} ") for line in lines), name


PODMAN_AS_NOBODY = """
import os
from tare.lab.doctor.containers import podman
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
podman()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_podman_is_asked_without_leaving_a_process() -> None:
    if shutil.which("podman") is None:
        pytest.skip("podman is not installed")
    command = [sys.executable, "-c", PODMAN_AS_NOBODY]
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, 65534, 65534)
        subprocess.run(command, cwd=folder, env=os.environ | {"HOME": folder}, check=True)
        pid = int((Path(folder) / "tmp" / "pause.pid").read_text())
        wait_for(lambda: not is_running(pid))
