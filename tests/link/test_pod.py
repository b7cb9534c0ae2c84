# SPDX-License-Identifier: Apache-2.0
"""Two containers of a pod: they share a network namespace, and nothing else, not even the user."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.link.linked import LINK, assert_carried
from tests.link.test_namespaces import CLIENT, SERVER
from tests.rights import end_rootless_podman, may_make_namespaces
from tests.waiting import SECONDS

USER = 4242
"""Nobody of the machine's: rootless podman maps this one ID to root."""
AS_USER = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
SYSTEM = ("usr", "lib", "lib64", "bin")
PODMAN = "podman --cgroup-manager cgroupfs --storage-driver vfs --runtime runc run --rm"
LIMITS = ["--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"]
TARE = ["/tare/bin/tare-link", "--eager", "--json"]
PYTHON = ["--", "/usr/bin/python3", "-c"]
USERS = {"server": 1001, "client": 1002}
"""Those of a pod of root's podman."""


@pytest.fixture
def folder() -> Iterator[Path]:
    """Roots of two containers of USER's, and what both need of Tare."""
    if not may_make_namespaces():
        pytest.skip("only root can act as another user")
    if shutil.which("podman") is None or shutil.which("runc") is None:
        pytest.skip("podman and runc are not installed")
    with TemporaryDirectory(prefix="tare-pod-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        shutil.copytree(Path(LINK).parents[1] / "lib", folder / "tare" / "lib", symlinks=True)
        (folder / "tare" / "bin").mkdir()
        shutil.copy(LINK, folder / "tare" / "bin")
        for owned in ("home", "run", "server", "client"):
            (folder / owned).mkdir(mode=0o755)
            os.chown(folder / owned, USER, USER)
        for root in ("server", "client"):
            for inner in (*SYSTEM, "tare"):
                (folder / root / inner).mkdir()
                os.chown(folder / root / inner, USER, USER)
        yield folder
        end_rootless_podman(folder / "run")


def container(folder: Path, name: str, network: str, *command: str, two: bool) -> list[str]:
    """Of USER's podman, or of root's and with one of USERS in it."""
    mounts = [f"--volume=/{inner}:/{inner}:ro" for inner in SYSTEM if Path("/", inner).exists()]
    environment = [f"HOME={folder}/home", f"XDG_RUNTIME_DIR={folder}/run"]
    options = [f"--name={name}", f"--network={network}", "--workdir=/", *LIMITS, *mounts]
    root = [f"--volume={folder}/tare:/tare:ro", "--rootfs", f"{folder}/{name}"]
    podman, *words = PODMAN.split()
    storage = [f"--root={folder}/storage", f"--runroot={folder}/run"] if two else []
    user = [f"--user={USERS[name]}"] if two else []
    acts = [] if two else AS_USER
    return [*acts, "env", *environment, podman, *storage, *words, *user, *options, *root, *command]


@pytest.mark.exhaustive
@pytest.mark.parametrize("two", [False, True], ids=["one user", "two users"])
def test_containers_of_a_pod_are_linked(folder: Path, two: bool) -> None:
    ends = ("server", "client")
    allowed = {
        name: ["--allow-uid", str(USERS[other])] if two else []
        for name, other in zip(ends, reversed(ends), strict=True)
    }
    server = subprocess.Popen(
        container(folder, "server", "none", *TARE, *allowed["server"], *PYTHON, SERVER, two=two),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        port = server.stdout.readline().strip()
        if not port:
            pytest.skip(f"podman starts no container here: {server.communicate()[1]}")
        words = [*TARE, *allowed["client"], *PYTHON, CLIENT, port]
        client = subprocess.run(
            container(folder, "client", "container:server", *words, two=two),
            check=False,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        _, errors = server.communicate(timeout=SECONDS)
    finally:
        server.kill()
    assert (client.returncode, client.stdout) == (0, "0\n"), client.stderr
    for text in (errors, client.stderr):
        assert_carried(json.loads(text.splitlines()[-1]), 1)
