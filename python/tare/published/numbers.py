# SPDX-License-Identifier: Apache-2.0
"""The numbers of published experiments, beside the numbers of results that repeat them."""

import re
import tomllib
from collections.abc import Sequence
from importlib.resources import files
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

GUEST = re.compile("-(kvm|tcg|uml)$")


class Row(BaseModel):
    """What was published for one row of a table of the report; an empty key fits any row."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    table: Annotated[str, Field(pattern="^(pooled-t|best-fit)$")]
    environment: str = ""
    condition: str = ""
    span: str = ""
    text: str

    def fits(self, table: str, environment: str, condition: str, span: str) -> bool:
        """Whatever boots the guests of an environment: `vm` is also `vm-uml`."""
        asked = ((self.environment, environment), (self.condition, condition), (self.span, span))
        return self.table == table and all(
            mine in ("", theirs, GUEST.sub("", theirs)) for mine, theirs in asked
        )


class Published(BaseModel):
    """One publication; empty where a result repeats none."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    source: str = ""
    rows: Sequence[Row] = ()

    def columns(self, table: str) -> list[str]:
        """The head of the column that a table has more: none if nothing was published for it."""
        return [self.source] if any(row.table == table for row in self.rows) else []

    def cells(self, table: str, environment: str, condition: str, span: str = "") -> list[str]:
        """What the column has in one row of a table."""
        found = [row.text for row in self.rows if row.fits(table, environment, condition, span)]
        return ["; ".join(found) or "–" for _ in self.columns(table)]


def read_published(name: str) -> Published:
    """The publication that a plan names in `published`; an empty publication if it is not known."""
    file = files("tare.published") / f"{name}.toml"
    if not name.replace("-", "").isalnum() or not file.is_file():
        return Published()
    return Published.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
