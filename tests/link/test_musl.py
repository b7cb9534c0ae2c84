# SPDX-License-Identifier: Apache-2.0
"""Programs of musl: the library of tare link needs glibc."""

import shutil
import subprocess
from pathlib import Path

import pytest
from tests.link import linked
from tests.once import OUT, compiled
from tests.waiting import SECONDS


@pytest.fixture
def program() -> str:
    if shutil.which("musl-gcc") is None:
        pytest.skip("musl-tools is not installed")
    return str(compiled("musl", "musl-gcc", "-O1", Path(__file__).with_name("musl.c"), "-o", OUT))


def test_program_of_musl_is_not_started(program: str) -> None:
    done = subprocess.run(
        [linked.LINK, "--", program, "1"],
        check=False,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "it is linked with musl, not with glibc" in done.stderr
