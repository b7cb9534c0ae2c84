# SPDX-License-Identifier: Apache-2.0
"""The result folder: every finished run is durable, and the manifest is always whole."""

import fcntl
import os
import shutil
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from errno import ENOSPC
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from tare.atomic_files import created, empty, new_file, regular_file
from tare.errors import InputError
from tare.lab.result.file_ownership import WORK
from tare.samples.manifest import Manifest, read_manifest, write_manifest

if TYPE_CHECKING:
    import pyarrow as pa

LEAST_FREE_SPACE = 1 << 20
"""Bytes; a write that does not fit can leave so many free."""


@dataclass(frozen=True)
class RunKey:
    """What names one run of one condition."""

    experiment: str
    environment: str
    condition: str
    block: int
    run: int
    host: str


class ResultFolder:
    """A folder with manifest.json, samples/, machine/, costs/, logs/ and, while it runs, work/.

    It deletes by name what earlier runs left: `file_ownership.require_trusted` has checked before
    that no other user can change the folder.
    """

    manifest: Manifest
    """Of a result that was created or opened."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.work = path / WORK
        self._plan_file = path / "plan.toml"
        self._held: list[IO[bytes]] = []

    def create(self, plan_text: str, manifest: Manifest) -> None:
        """Begins a result, and holds it. Raises InputError where there is anything already."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            if any(self.path.iterdir()):
                raise InputError(
                    f"{self.path}: is not empty; choose another folder with --out,"
                    " or continue a result with --resume"
                )
            # Of two that begin here at once, one gets an error.
            with created(self._plan_file) as file:
                file.write(plan_text.encode())
            self._hold()
        except OSError as error:
            raise InputError(
                f"{error.filename}: {error.strerror}; choose another folder with --out"
            ) from error
        self.manifest = manifest
        self.save()

    def open(self) -> None:
        """Reads the manifest of a result that is to be finished, and holds the result.

        Raises InputError without a manifest, or where another process is at work on it.
        """
        try:
            self._hold()
        except OSError as error:
            raise InputError(
                f"{self.path}: not a result folder to resume: {error.strerror}"
            ) from error
        self.manifest = read_manifest(self.path)

    def replace_plan(self, text: str) -> None:
        """Puts another text into plan.toml, whole or not at all, of a result that is held."""
        with new_file(self._plan_file) as file:
            file.write(text.encode())
            # Locked before it has the name: at no time can another process take the result.
            self._lock(os.fdopen(os.dup(file.fileno()), "r+b"))

    def _hold(self) -> None:
        """Locks the result; the kernel lets go of it when this process ends, however it does."""
        self._lock(os.fdopen(regular_file(self._plan_file, os.O_RDWR), "r+b"))

    def _lock(self, file: IO[bytes]) -> None:
        self._held.append(file)
        try:
            fcntl.flock(self._held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(
                f"{self.path}: another tare run uses this folder; wait until it has finished"
            ) from error

    def close(self) -> None:
        """Lets go of the result."""
        for file in self._held:
            file.close()

    def save(self) -> None:
        """Writes the manifest."""
        write_manifest(self.path, self.manifest)

    def require_free_space(self) -> None:
        """Raises OSError where the disk is full."""
        disk = os.statvfs(self.path)
        if disk.f_bavail * disk.f_frsize < LEAST_FREE_SPACE:
            raise OSError(ENOSPC, os.strerror(ENOSPC), str(self.path))

    def fresh_work(self, name: str) -> Path:
        """An empty folder for one run's own files."""
        folder = self.work / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        return folder

    def clear_work(self) -> None:
        """Removes what runs left behind."""
        shutil.rmtree(self.work, ignore_errors=True)

    def log(self, block: int, name: str) -> Path:
        """The empty log of one command of one block."""
        path = self.path / "logs" / f"block={block}" / f"{name}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        empty(path)
        return path

    def run_file(self, table: str, key: RunKey) -> Path:
        """Where one table of one run stands."""
        folder = f"condition={key.condition}/block={key.block}/run={key.run}"
        return self.path / table / folder / f"{table}.parquet"

    def write(self, name: str, table: "pa.Table", key: RunKey) -> None:
        """Writes one table of one run, completed by what the lab knows, whole or not at all."""
        import pyarrow.parquet as pq

        path = self.run_file(name, key)
        path.parent.mkdir(parents=True, exist_ok=True)
        with new_file(path) as file:
            pq.write_table(completed(name, table, key), file, compression="zstd")


def count_look(folder: Path) -> None:
    """Records in the manifest that verdicts are computed of the blocks that a result has.

    Raises InputError where the folder is no result, or another process is at work on it.
    """
    with closing(ResultFolder(folder)) as result:
        result.open()
        looks, blocks = result.manifest.looks, result.manifest.blocks
        if blocks not in looks:
            looks.append(blocks)
            result.save()


def completed(name: str, table: "pa.Table", key: RunKey) -> "pa.Table":
    """`table` with the columns that the lab knows, typed and ordered as declared."""
    import pyarrow as pa

    from tare.tables import arrow_schema

    known: Mapping[str, Any] = vars(key)
    columns, fields = [], []
    for declared in arrow_schema(name):
        if declared.name in known:
            plain = pa.array([known[declared.name]]).cast(declared.type)
            columns.append(pa.repeat(plain[0], table.num_rows).cast(declared.type))
        elif declared.name in table.column_names:
            columns.append(table[declared.name].cast(declared.type))
        else:
            continue
        fields.append(declared)
    return pa.table(columns, schema=pa.schema(fields))
