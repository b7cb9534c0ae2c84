# SPDX-License-Identifier: Apache-2.0
"""Histograms that stay beside the samples of a result: a billion requests are counted once."""

from __future__ import annotations

import os
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from tare.samples.engines.histogram import histogram

if TYPE_CHECKING:
    import pyarrow as pa
    from ibis.expr.types import Table

HISTOGRAMS = "histograms"
_COUNTED = ("samples", "machine", "manifest.json")
"""What of a result says which requests count, and what they took."""


@dataclass(frozen=True)
class Kept:
    """The histograms of a result folder, each of some of its requests, while these are the same."""

    folder: Path

    def histogram(self, samples: Table, which: object) -> pa.Table:
        """`histogram` of `samples`, read where it is there; `which` tells it from others.

        Where nothing can be written it is counted each time.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = self.folder / HISTOGRAMS / f"{self._name(which)}.parquet"
        try:
            return pq.read_table(path, partitioning=None)
        except (OSError, pa.ArrowInvalid):
            rows = histogram(samples).to_pyarrow()
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            path.parent.mkdir(exist_ok=True)
            pq.write_table(rows, fresh)
            fresh.replace(path)
        except OSError:
            fresh.unlink(missing_ok=True)
        return rows

    def _name(self, which: object) -> str:
        """Of the samples' files as they are now, too."""
        found = [repr(which)]
        for name in _COUNTED:
            for path in sorted([self.folder / name, *(self.folder / name).rglob("*")]):
                if path.is_file():
                    now = path.stat()
                    found.append(f"{path.relative_to(self.folder)} {now.st_size} {now.st_mtime_ns}")
        return sha256("\n".join(found).encode()).hexdigest()[:16]
