# SPDX-License-Identifier: Apache-2.0
"""Result folders whose requests have traces."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq
from tests.report.synthetic import Synthetic, write_table


class Call(NamedTuple):
    """A span of every trace; begin and duration are shares of the root span."""

    name: str
    service: str
    parent: int | None
    begin: float
    duration: float


SHOP = (
    Call("order: POST /order (server)", "order", None, 0.0, 1.0),
    Call("order: SELECT (client)", "order", 0, 0.05, 0.1),
    Call("order: POST /pay (client)", "order", 0, 0.2, 0.6),
    Call("pay: POST /pay (server)", "pay", 2, 0.25, 0.5),
    Call("pay: UPDATE (client)", "pay", 3, 0.5, 0.2),
    Call("order: audit", "order", 0, 0.2, 0.3),
)


@dataclass
class Traced(Synthetic):
    """Each request has a trace of `calls`, whose root span lacks `outside_ns` of the request."""

    requests: int = 300
    blocks: int = 6
    invalid: Sequence[int] = ()
    hooked: Sequence[str] = ()
    calls: Sequence[Call] = SHOP
    outside_ns: int = 5_000
    clock_error_ns: int | None = None
    without_parent: Sequence[int] = field(default=())
    """The calls whose parent was not recorded."""

    def _samples(
        self, folder: Path, run: dict[str, Any], level: float, random: np.random.Generator
    ) -> None:
        super()._samples(folder, run, level, random)
        (file,) = folder.glob(f"samples/*/*/run={run['run']}/samples.parquet")
        requests = pq.ParquetFile(file).read().to_pylist()
        spans = [
            row
            for number, request in enumerate(requests)
            for row in self._trace(f"{run['run']:08x}{number:08x}", request)
        ]
        names = {**requests[0], **spans[0]}
        rows = [*requests, *spans]
        write_table(
            folder, "samples", run, {name: [row.get(name) for row in rows] for name in names}
        )

    def _trace(self, trace: str, request: dict[str, Any]) -> list[dict[str, Any]]:
        duration = max(request["duration_ns"] - self.outside_ns, 1)
        start = request["start_ns"] + self.outside_ns // 2
        return [
            {
                "environment": request["environment"],
                "span": call.name,
                "service": call.service,
                "source": "span",
                "trace_id": trace,
                "span_id": f"{place:04x}",
                "parent_id": "lost" if place in self.without_parent
                else None if call.parent is None
                else f"{call.parent:04x}",
                "start_ns": start + int(call.begin * duration),
                "duration_ns": int(call.duration * duration),
                "clock_error_ns": self.clock_error_ns,
                "ok": True,
            }
            for place, call in enumerate(self.calls)
        ]  # fmt: skip
