# SPDX-License-Identifier: Apache-2.0
"""What a layer wrote of its own cost."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def counted(costs: "pa.Table", metric: str) -> int:
    """The sum of a counter over all functions; 0 where there is none."""
    import pyarrow.compute as pc

    of_metric = pc.equal(costs["metric"].cast("string"), metric)
    return int(pc.sum(costs["count"].filter(of_metric)).as_py() or 0)
