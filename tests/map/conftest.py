# SPDX-License-Identifier: Apache-2.0
import fcntl
import itertools
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.map.hosts import BRIDGE, Host, connect, executable, ip, join
from tests.rights import may_make_namespaces

from tare.native import native

_numbers = itertools.count(1)


@pytest.fixture(autouse=True, scope="session")
def _tracer_can_run() -> None:
    if not may_make_namespaces():
        pytest.skip("BPF and network namespaces need root")
    if not Path("/sys/kernel/btf/vmlinux").exists():
        pytest.skip("this kernel has no BTF")
    if not Path(native("bin", "tare-map")).exists():
        pytest.skip("tare-map is not built: clang or libbpf-dev is missing")


@pytest.fixture(autouse=True)
def _alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A tracer sees the whole machine, so the tests of other workers wait: they use the same
    addresses and names."""
    with (tmp_path_factory.getbasetemp().parent / "map.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture
def hosts() -> Iterator[tuple[Host, Host]]:
    """Two hosts with a cable between them: 10.99.0.1 and 10.99.0.2, fd99:0::1 and fd99:0::2."""
    made = [Host(f"tare-map-{os.getpid()}-{next(_numbers)}") for _ in range(2)]
    try:
        connect(made[0], made[1], 0)
        yield made[0], made[1]
    finally:
        for host in made:
            host.remove()


@pytest.fixture
def bridged(request: pytest.FixtureRequest) -> Iterator[list[Host]]:
    """Three hosts on a bridge: 10.98.0.1 to 3 and fd98::1 to 3. A parameter limits the families."""
    made = [Host(f"tare-map-{os.getpid()}-{next(_numbers)}") for _ in range(4)]
    *hosts, switch = made
    try:
        ip("-n", switch.name, "link", "add", BRIDGE, "type", "bridge")
        ip("-n", switch.name, "link", "set", BRIDGE, "up")
        for number, host in enumerate(hosts, 1):
            join(host, switch, number, families=getattr(request, "param", "46"))
        yield hosts
    finally:
        for host in made:
            host.remove()


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str], Path]:
    """Python under a name."""
    return lambda name: executable(tmp_path, name)
