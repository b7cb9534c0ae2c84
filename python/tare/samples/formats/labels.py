# SPDX-License-Identifier: Apache-2.0
"""Requests of several names in one file: their quantiles are those of the mix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tare.samples.sql.engine import count_rows

if TYPE_CHECKING:
    from tare.samples.sql.table import Table

SHOWN = 3
LONGEST = 40


def mixed(requests: Table, label: str, remedy: str) -> tuple[str, ...]:
    """A note where the column `label` has several values; `remedy` says how to part them."""
    column: Any = requests[label].nullif("")
    names = requests.filter(column.notnull()).select(name=column).distinct()
    number = count_rows(names)
    if number < 2:
        return ()
    first = [row["name"] for row in names.order_by("name").limit(SHOWN).rows()]
    listed = ", ".join(
        f"'{name if len(name) <= LONGEST else name[:LONGEST] + '…'}'" for name in first
    )
    more = " …" if number > SHOWN else ""
    return (
        f"requests of {number:,} different {label}s ({listed}{more}) count as one kind, and no"
        f" quantile of a mix need be one of theirs; {remedy}",
    )
