# SPDX-License-Identifier: Apache-2.0
"""What a load records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Measured:
    """What the load recorded of one condition."""

    samples: "pa.Table"
    machine: "pa.Table | None"
    requests: int
    errors: int
    errors_by_kind: Mapping[str, int]
    cpu: Mapping[str, float]
    """`service_ns_per_request`, `generator_ns_per_request` as far as known."""
    notes: Sequence[str] = ()
    """What was odd about the output of a foreign generator."""
    lost: float = 0.0
    """The share of the rows of that output that are no requests."""
    stepped: str | None = None
    """How its clock was set back on the way."""

    def extent(self) -> tuple[int | None, int | None]:
        """First start and last end in ns; None where nothing has a start, or nothing an end.

        Requests that failed may have neither.
        """
        import pyarrow.compute as pc

        if "start_ns" not in self.samples.column_names:
            return None, None
        start = self.samples["start_ns"]
        last = pc.max(pc.add(start, self.samples["duration_ns"]))
        return pc.min(start).as_py(), last.as_py()
