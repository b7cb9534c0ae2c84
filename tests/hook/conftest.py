# SPDX-License-Identifier: Apache-2.0
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.once import OUT, compiled

CASES = Path(__file__).parent / "cases"
Compile = Callable[..., Path]


@pytest.fixture(scope="session")
def compile_case() -> Compile:
    """Compiles `cases/NAME.c` with the flags in its `// cc:` line and those given."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")

    def run(name: str, *flags: str) -> Path:
        source = CASES / f"{name}.c"
        own = [line[6:].split() for line in source.read_text().splitlines() if line[:6] == "// cc:"]
        wanted = ["-O1", "-pthread", *(flag for line in own for flag in line), *flags]
        # Wrong arguments are what some cases are about.
        quiet = ["-w"]
        return compiled(name, compiler, *wanted, *quiet, "-o", OUT, source)

    return run
