# SPDX-License-Identifier: Apache-2.0
"""Histograms that stay beside the samples of a result: a billion requests are counted once."""

from __future__ import annotations

import os
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from tare.samples.engines.histogram import OCTAVE, histogram

if TYPE_CHECKING:
    import pyarrow as pa
    from ibis.expr.types import Table

HISTOGRAMS = "histograms"


@dataclass(frozen=True)
class Kept:
    """The histograms of a result folder, each of some of its requests, while these are the same.

    `left_out` are the (run, slice) that do not count.
    """

    folder: Path
    left_out: frozenset[tuple[int, int]]

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
        found = [repr((OCTAVE, which, sorted(self.left_out)))]
        for path in sorted((self.folder / "samples").rglob("*.parquet")):
            now = path.stat()
            found.append(f"{path.relative_to(self.folder)} {now.st_size} {now.st_mtime_ns}")
        return sha256("\n".join(found).encode()).hexdigest()[:16]
