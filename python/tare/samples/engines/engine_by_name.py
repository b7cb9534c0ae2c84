# SPDX-License-Identifier: Apache-2.0
"""The engine that a person names, and the samples of a result in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tare.errors import InputError
from tare.samples.engines import database, duckdb, spark
from tare.samples.engines.checked import checked
from tare.untrusted import regular_files

if TYPE_CHECKING:
    from tare.samples.sql.table import Table

FILES = {"duckdb": duckdb, "spark": spark}
NAMES = (*FILES, *database.CLIENTS)


@dataclass(frozen=True)
class Engine:
    """An engine that answers."""

    url: str
    backend: Any

    @property
    def reads_files(self) -> bool:
        """Whether it reads the files of a result; else a table of its own has the samples."""
        return _name(self.url) in FILES

    def table(self, folder: Path, name: str) -> Table | None:
        """One table of a result folder with condition (text), block and run (int32).

        A database has it all in one table that its url names, and the folder is not looked at.
        None where there are no files. Raises InputError where there is no such table.
        """
        module = FILES.get(_name(self.url))
        if module is None:
            table = database.read_table(self.backend, self.url)
            where = f"--engine {database.without_password(self.url)}"
        else:
            files = sorted(filter(_in_hive_folders, regular_files(folder / name)))
            if not files:
                return None
            table = module.read_parquet(self.backend, files)
            where = str(folder / name)
        typed = table.mutate(
            condition=table.condition.cast("string"),
            block=table.block.cast("int32"),
            run=table.run.cast("int32"),
        )
        return checked(typed, name, where)


def open_engine(url: str = "duckdb") -> Engine:
    """`duckdb`, `spark[:MASTER]`, `clickhouse://...#TABLE`, `trino://...#TABLE`.

    Raises InputError for another name, and where the engine is not installed or does not answer.
    """
    name = _name(url)
    if name not in NAMES:
        raise InputError(f"--engine {url}: expected one of {', '.join(NAMES)}")
    if module := FILES.get(name):
        return Engine(url, module.connect(url))
    return Engine(url, database.connect(url))


def _in_hive_folders(file: Path) -> bool:
    keys = [part.partition("=")[0] for part in file.parts[-4:-1]]
    return keys == ["condition", "block", "run"] and file.suffix == ".parquet"


def _name(url: str) -> str:
    return url.partition(":")[0]
