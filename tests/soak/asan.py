# SPDX-License-Identifier: Apache-2.0
"""The preload libraries, built with AddressSanitizer, in the programs of the tests.

Each library needs the sanitizer's runtime itself, so that it works in programs that were built
without it. The runtime comes from gcc: Rust's is for executables only.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.results import ROOT
from tests.soak.fuzz import has_nightly

RUNTIME = "libasan.so.8"
"""The version whose interface Rust's compiler uses; of gcc 12 and later."""
TRIPLE = "x86_64-unknown-linux-gnu"
LINK = f"-Clink-arg=-Wl,--push-state,--no-as-needed,-l:{RUNTIME},--pop-state"
PACKAGES = ("tare-hook-preload", "tare-link-preload", "tare-log-library")
LIBRARIES = ("libtare_hook.so", "libtare_link.so", "libtare_log.so")
OPTIONS = {
    # Programs lose memory when they end, and have other libraries before this one.
    "detect_leaks": 0,
    "verify_asan_link_order": 0,
    # The runtime would call setrlimit, which is the library's, before its memory is ready.
    "disable_coredump": 0,
    # Signals and their stacks are the program's.
    **dict.fromkeys(("handle_segv", "handle_sigbus", "handle_sigfpe", "use_sigaltstack"), 0),
}
TESTS = (
    "tests/hook/test_conformance.py",
    "tests/hook/test_block.py",
    "tests/hook/test_seen.py",
    "tests/hostile/test_memory_that_goes.py",
    "tests/link/test_calls.py",
    "tests/log/test_hostile.py::test_programs_go_on_whatever_is_in_their_segment[C]",
    "tests/log/test_programs.py",
)

LEFT_OUT = "not siglongjmp and not cancelled_unwinding"
"""Jumps out of a function leave the bytes around its variables marked."""


def run() -> None:
    """Runs these tests; raises CalledProcessError where one fails, as any does in whose program the
    sanitizer found something."""
    with sanitized() as environment:
        if environment:
            command = [sys.executable, "-m", "pytest", "--quiet", "-k", LEFT_OUT, *TESTS]
            subprocess.run(command, cwd=ROOT, env=environment, check=True)


@contextmanager
def sanitized() -> Iterator[dict[str, str] | None]:
    """The environment of Python programs that use these libraries; None, with the reason on stderr,
    if they cannot be built."""
    if not has_nightly() or not _has_runtime():
        print(f"left out: it needs a nightly toolchain and gcc's {RUNTIME}", file=sys.stderr)
        yield None
        return
    target = ROOT / "target" / "asan"
    flags = {"RUSTFLAGS": f"-Zsanitizer=address {LINK}", "CARGO_TARGET_DIR": str(target)}
    command = ["cargo", "+nightly", "build", "--locked", "--profile", "preload"]
    command += ["--target", TRIPLE, *(word for name in PACKAGES for word in ("-p", name))]
    subprocess.run(command, cwd=ROOT, env=os.environ | flags, check=True)
    with TemporaryDirectory() as folder:
        _replace(target / TRIPLE / "preload", Path(folder))
        options = ":".join(f"{name}={value}" for name, value in OPTIONS.items())
        libraries = str(Path(folder, "tare", "_native", "lib"))
        variables = {"PYTHONPATH": folder, "ASAN_OPTIONS": options, "LD_LIBRARY_PATH": libraries}
        yield os.environ | variables


def _has_runtime() -> bool:
    """Whether the linker finds it: else gcc says the bare name."""
    if shutil.which("cc") is None:
        return False
    command = ["cc", f"-print-file-name={RUNTIME}"]
    return Path(subprocess.check_output(command, text=True).strip()).is_absolute()


def _replace(built: Path, folder: Path) -> None:
    """The package with these libraries in place of its own."""
    package = folder / "tare"
    package.mkdir()
    for file in (ROOT / "python" / "tare").iterdir():
        if file.name != "_native":
            (package / file.name).symlink_to(file)
    # Programs find their libraries beside the file that they really are.
    shutil.copytree(ROOT / "python" / "tare" / "_native", package / "_native", symlinks=True)
    libraries = package / "_native" / "lib"
    for name in LIBRARIES:
        shutil.copy(built / name, libraries)
    log = shutil.copy(built / "libtare_log.so", libraries / "libtare_log.so.1")
    # Of programs that are linked with it statically, the sanitizer would miss its runtime.
    (libraries / "libtare_log.a").write_text(f"INPUT({log} -l:{RUNTIME})\n")
