# SPDX-License-Identifier: Apache-2.0
"""Arrow streams that load generators and layers write while they run."""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def read_stream(path: Path) -> "pa.Table | None":
    """The batches of an Arrow stream, also of a stream that was cut short; None without any."""
    import pyarrow as pa

    batches = []
    try:
        with pa.memory_map(str(path)) as file, pa.ipc.open_stream(file) as stream:
            # A writer that was killed within a batch left whole batches before it.
            with suppress(pa.ArrowInvalid, OSError):
                batches.extend(stream)
            return pa.Table.from_batches(batches, stream.schema)
    except (pa.ArrowInvalid, OSError):
        return None


def of_condition(table: "pa.Table", condition: str) -> "pa.Table":
    """The rows of one condition of a table that several share."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return table.filter(pc.equal(table["condition"].cast(pa.string()), condition))
