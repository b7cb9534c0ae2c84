# SPDX-License-Identifier: Apache-2.0
"""What tare-load holds in memory does not grow with the number of requests.

`TARE_REQUESTS=100000000 pytest tests/load/test_load_memory.py` is the long run.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.load.conftest import TARE_LOAD, most_kib, wait_for_port

from tare.lab.environments.ports import free_port

NULL_SERVER = Path(__file__).parents[2] / "bench" / "load" / "null_server.c"
FEW = 100_000
MANY = int(os.environ.get("TARE_REQUESTS", "500000"))
MIB = 1024
LEEWAY = 16 * MIB
"""KiB; rings of samples (6 MiB) and slices (2 MiB) and batches of both tables are touched as far as
they ever fill: wholly if the machine takes the CPU from the recorder. Samples that were never
freed would be 19 MiB."""


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    program = tmp_path / "null_server"
    subprocess.run(["cc", "-O2", NULL_SERVER, "-o", program], check=True)
    port = free_port("127.0.0.1")
    with subprocess.Popen([program, str(port)]) as process:
        try:
            wait_for_port(port)
            yield f"http://127.0.0.1:{port}/"
        finally:
            process.kill()


@pytest.mark.exhaustive
@pytest.mark.timeout(600 + MANY // 5_000)
def test_a_run_of_any_length_has_the_same_memory(url: str) -> None:
    # Slices so short are as many in seconds as others in a long run.
    few, many = _most_kib(url, FEW), _most_kib(url, MANY, "--slice", "50us")
    print(f"{few} KiB for {FEW:,} requests, {many} KiB for {MANY:,}")
    assert many <= few + LEEWAY


def _most_kib(url: str, requests: int, *more: str) -> int:
    """The most memory that is resident at a time while so many requests are recorded."""
    # The rows go nowhere: a hundred million of them would be 6 GB.
    files = ["--out", "/dev/null", "--machine", "/dev/null"]
    load = ["--users", "16", "--warmup", "0s", "--requests", str(requests), *more]
    command = [TARE_LOAD, "http", url, "--json", *load, *files]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, text=True) as process:
        most = most_kib(process)
    assert process.returncode == 0
    return most
