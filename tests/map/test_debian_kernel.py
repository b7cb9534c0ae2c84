# SPDX-License-Identifier: Apache-2.0
"""The tracer on Debian's own kernel: its structures differ from those of later kernels, and it has
no events of UDP messages."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.map.in_guest import COUNT, SIZE
from tests.rights import may_make_namespaces

from tare.errors import InputError
from tare.lab import environments
from tare.lab.environments.guest.qemu import Qemu
from tare.lab.environments.vm import Vm
from tare.lab.processes.processes import Processes
from tare.native import native
from tare.plan.schema.environments import VmEnvironment

pytestmark = pytest.mark.integration
METHODS = ("bundle", "aggregate", "stream")
IN_GUEST = Path(__file__).parent / "in_guest.py"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each method finds in one guest."""
    if not may_make_namespaces():
        pytest.skip("guests need root")
    try:
        Qemu("tcg").check()
    except (InputError, ValueError) as error:
        pytest.skip(f"QEMU cannot boot Debian's kernel: {error}")
    with Processes(tmp_path_factory.mktemp("guest") / "supervisor.log") as processes:
        table = {"type": "vm", "machine": "tcg", "memory": "1 GiB"}
        settings = VmEnvironment.model_validate(table)
        guest = environments.of_run(settings, processes, "1/vm/plain")
        assert isinstance(guest, Vm)
        guest.prepare()
        try:
            words = [sys.executable, "-I", str(IN_GUEST), str(native("bin", "tare-map")), *METHODS]
            answer: dict[str, Any] = json.loads(guest.exec(words))
        finally:
            guest.stop()
    return answer


@pytest.mark.parametrize("method", METHODS)
def test_edges_are_exact(found: dict[str, Any], method: str) -> None:
    run = found["runs"][method]
    assert run.get("method") == method, run["messages"]
    assert not any(run["completeness"].values())
    version = tuple(int(number) for number in found["kernel"].split(".")[:2])
    missing = {part["part"] for part in run["missing"]}
    assert ("udp" in missing) == (version < (6, 3))
    assert {edge["role"] for edge in run["own"]} == {"client", "server"}
    has_bytes = method != "stream"
    for edge in run["own"]:
        assert (edge["found"], edge["opened"]) == (1, COUNT)
        assert (edge["pid"], edge["direction"]) == (run["pid"], "observed")
        assert edge["program"].startswith("python")
        assert edge["failed"] == ({"ECONNREFUSED": 1} if edge["role"] == "client" else {})
        if has_bytes:
            sizes = [(COUNT + 1) * SIZE, COUNT]
            expected = sizes if edge["role"] == "client" else sizes[::-1]
            assert [edge["bytes_sent"], edge["bytes_received"]] == expected
            assert (edge["closed"], edge["active"]) == (COUNT, 1)
