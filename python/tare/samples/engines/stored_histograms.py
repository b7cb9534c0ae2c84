# SPDX-License-Identifier: Apache-2.0
"""Histograms that stay beside the samples of a result: a billion requests are counted once."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from tare.files import new_file
from tare.samples.engines.histogram import OCTAVE, histogram
from tare.samples.sql.group_numbers import settled
from tare.untrusted import regular_files

if TYPE_CHECKING:
    import pyarrow as pa

    from tare.samples.engines.cut_bitmask import WarmUpEnd
    from tare.samples.sql.table import Table

HISTOGRAMS = "histograms"
FORMAT = 1
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
        """The histogram of the requests from `begin` on, read where it is there; `samples` are
        those of an environment.

        Where nothing can be written it is counted each time.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        name = self._name((environment, sorted(begin.items())))
        path = self.folder / HISTOGRAMS / f"{name}.parquet"
        deque(regular_files(path.parent), maxlen=0)
        try:
            return pq.read_table(path, partitioning=None)
        except (OSError, pa.ArrowInvalid):
            rows = histogram(settled(samples, begin)).to_pyarrow()
        with suppress(OSError):
            path.parent.mkdir(exist_ok=True)
            with new_file(path) as file:
                pq.write_table(rows, file)
        return rows

    def _name(self, which: object) -> str:
        """Of the samples' files as they are now, too."""
        found = [repr((FORMAT, OCTAVE, which, sorted(self.left_out)))]
        for path in sorted(regular_files(self.folder / "samples")):
            now = path.stat()
            found.append(f"{path.relative_to(self.folder)} {now.st_size} {now.st_mtime_ns}")
        return sha256("\n".join(found).encode()).hexdigest()[:16]
