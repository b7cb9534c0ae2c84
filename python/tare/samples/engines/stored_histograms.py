# SPDX-License-Identifier: Apache-2.0
"""Histograms that stay beside the samples of a result: a billion requests are counted once.

A result may come from another user. Only a histogram that this user has counted is read: it begins
with a code that nobody can make without the user's key.
"""

from __future__ import annotations

import fcntl
import hmac
import os
import secrets
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from tare.atomic_files import PRIVATE, new_file, regular_file
from tare.errors import InputError
from tare.samples.engines.histogram import OCTAVE, histogram
from tare.samples.sql.group_numbers import settled
from tare.state import state_folder
from tare.trust import trusted_folder
from tare.untrusted import MEBIBYTE, read_bytes, regular_files

if TYPE_CHECKING:
    import pyarrow as pa

    from tare.samples.engines.cut_bitmask import WarmUpEnd
    from tare.samples.sql.table import Table

HISTOGRAMS = "histograms"
LARGEST = 256 * MEBIBYTE
KEY = "histograms.key"
KEY_BYTES = 32
FORMAT = 2
"""Another number whenever other rows are requests, or their latency is another: then histograms of
before are not those of the same samples any more."""


@dataclass(frozen=True)
class StoredHistograms:
    """The histograms of a result folder, each of some of its requests, while these are the same.

    `left_out` are the (run, slice) that do not count.
    """

    folder: Path
    left_out: frozenset[tuple[int, int]]

    def histogram(self, environment: str, samples: Table, begin: WarmUpEnd) -> pa.Table:
        """The histogram of the requests from `begin` on, read where this user has counted it;
        `samples` are those of an environment.

        Where nothing can be written it is counted each time.
        """
        import pyarrow.parquet as pq

        name = self._name((environment, sorted(begin.items())))
        path = self.folder / HISTOGRAMS / name
        deque(regular_files(path.parent), maxlen=0)
        key = _key()
        if key is not None and (known := _content(path, key)) is not None:
            return pq.read_table(BytesIO(known))
        rows = histogram(settled(samples, begin)).to_pyarrow()
        if key is not None:
            content = BytesIO()
            pq.write_table(rows, content)
            # The result may have been replaced by a link of its owner meanwhile.
            with (
                suppress(OSError, InputError),
                trusted_folder(path.parent, create=True) as folder,
                new_file(path, folder) as file,
            ):
                file.write(_code(key, name, content.getvalue()) + content.getvalue())
        return rows

    def _name(self, which: object) -> str:
        """Of the samples' files as they are now, too."""
        found = [repr((FORMAT, OCTAVE, which, sorted(self.left_out)))]
        for path in sorted(regular_files(self.folder / "samples")):
            now = path.stat()
            found.append(f"{path.relative_to(self.folder)} {now.st_size} {now.st_mtime_ns}")
        return sha256("\n".join(found).encode()).hexdigest()[:16]


def _code(key: bytes, name: str, content: bytes) -> bytes:
    return hmac.digest(key, name.encode() + content, "sha256")


def _content(path: Path, key: bytes) -> bytes | None:
    """The file's Parquet; None unless it was written with this key, under this name."""
    try:
        data = read_bytes(path, LARGEST)
    except (OSError, ValueError):
        return None
    code, content = data[: sha256().digest_size], data[sha256().digest_size :]
    return content if hmac.compare_digest(code, _code(key, path.name, content)) else None


def _key() -> bytes | None:
    """This user's, made where there is none; None where none can be stored."""
    try:
        path = state_folder() / KEY
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = regular_file(path, os.O_RDWR | os.O_CREAT)
        with os.fdopen(descriptor, "r+b") as file:
            # Another process may make one now.
            fcntl.flock(file, fcntl.LOCK_EX)
            os.fchmod(descriptor, PRIVATE)
            key = file.read()
            if len(key) != KEY_BYTES:
                key = secrets.token_bytes(KEY_BYTES)
                file.seek(0)
                file.truncate()
                file.write(key)
            return key
    except (OSError, RuntimeError, InputError):
        return None
