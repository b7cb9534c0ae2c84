# SPDX-License-Identifier: Apache-2.0
"""Attacks by an unprivileged user on programs of root or of another user."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.hostile.results import finish, restore
from tests.once import OUT, compiled, once
from tests.rights import may_make_namespaces

from tare.native import native

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(__file__).parent / "programs"
Compile = Callable[..., Path]
NOBODY = 65_534
VICTIM = 65_533
"""Another user without rights."""
AS_NOBODY = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]


@pytest.fixture
def open_to_all() -> Iterator[Path]:
    """A folder that all users can write to."""
    if not may_make_namespaces():
        pytest.skip("only root can act as another user")
    with TemporaryDirectory(prefix="tare-hostile-") as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


def acting_as(user: int, *rights: str) -> list[str]:
    """Runs a program as this user, with these rights beside the right to read all files: the
    interpreter may be in a folder that only root can read."""
    kept = ",".join(f"+{right}" for right in ("dac_read_search", *rights))
    ids = [f"--reuid={user}", f"--regid={user}", "--clear-groups"]
    return ["setpriv", *ids, f"--inh-caps={kept}", f"--ambient-caps={kept}"]


@contextmanager
def attack(name: str, *words: object) -> "Iterator[subprocess.Popen[str]]":
    """Runs attacks/NAME.py as user nobody; yields when it has printed `ready`."""
    module = f"tests.hostile.attacks.{name}"
    # An attack by several users acts as each of them.
    command = [*acting_as(NOBODY, "setuid"), sys.executable, "-B", "-m", module, *map(str, words)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=ROOT) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def says(process: "subprocess.Popen[str]") -> str:
    """The next line that an attack prints."""
    assert process.stdout is not None
    return process.stdout.readline().rstrip("\n")


@pytest.fixture(scope="session")
def restricted() -> Compile:
    """Compiles programs/NAME.c with these flags."""
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")

    def compile_program(name: str, *flags: str | Path) -> Path:
        warnings = ["-Wall", "-Wno-unused-result"]
        command: list[str | Path] = ["cc", "-O2", *warnings, "-pthread", PROGRAMS / f"{name}.c"]
        return compiled(name, *command, *flags, "-o", OUT)

    return compile_program


@pytest.fixture(scope="session")
def logging_program(restricted: Compile) -> Compile:
    """Compiles programs/NAME.c with these flags, for the library of events."""
    library = Path(native("lib", "libtare_log.so"))
    include = Path(native("include", "tare_log.h")).parent
    flags = [f"-I{include}", library, f"-Wl,-rpath,{library.parent}"]
    return lambda name, *more: restricted(name, *more, *flags)


def logged_to(folder: Path) -> list[str | Path]:
    """Runs a program whose events go to `events.log` there."""
    return [native("bin", "tare-log"), "run", "--out", folder / "events.log", "--"]


@pytest.fixture(scope="session")
def finished() -> Path:
    """A folder with a plan and its finished result, in which every kind of value occurs."""
    return once("finished", finish, __name__)


@pytest.fixture
def box(finished: Path, tmp_path: Path) -> Path:
    """A folder for copies of it, two below one in which nothing else may change."""
    box = tmp_path / "a" / "b"
    box.mkdir(parents=True)
    for folder in (tmp_path, tmp_path / "a", box):
        (folder / "x").mkdir()
        (folder / "x" / "kept").write_text("years")
    shutil.copy(finished / "plan.toml", box)
    restore(finished, box)
    return box
