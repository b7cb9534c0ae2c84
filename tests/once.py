# SPDX-License-Identifier: Apache-2.0
"""What tests need and none of them changes is made once a test run, which has several processes."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

OUT = "{out}"
"""The word of a compiler's command that is the file or folder to make."""
_FOLDER = "TARE_TESTS_ONCE"


def once(name: str, make: Callable[[Path], object], *key: object) -> Path:
    """The file or folder `name` that `make` leaves at the path that it gets.

    The first process that asks for this name and key makes it; nobody may change it afterwards.
    """
    digest = sha256(repr((name, *map(str, key))).encode()).hexdigest()
    folder = Path(os.environ[_FOLDER], digest[:16])
    folder.mkdir(exist_ok=True)
    path, done = folder / name, folder / ".done"
    with (folder / ".lock").open("w") as lock:
        flock(lock, LOCK_EX)
        if not done.exists():
            make(path)
            done.touch()
    return path


def compiled(name: str, *words: object) -> Path:
    """What a compiler makes with these words, of sources that stay as they are."""

    def make(path: Path) -> None:
        subprocess.run([str(path if word == OUT else word) for word in words], check=True)

    return once(name, make, *words)


@contextmanager
def shared() -> Iterator[None]:
    """The folder of all this, for this process and those that it starts meanwhile."""
    if _FOLDER in os.environ:
        yield
        return
    with TemporaryDirectory(prefix="tare-once-") as folder:
        os.environ[_FOLDER] = folder
        try:
            yield
        finally:
            del os.environ[_FOLDER]
