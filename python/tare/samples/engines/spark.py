# SPDX-License-Identifier: Apache-2.0
"""Spark, on this machine or on a cluster that sees the same files."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tare.errors import InputError

if TYPE_CHECKING:
    from tare.samples.sql.table import Table


def connect(url: str) -> Any:
    """`spark` is what Spark's own settings say, `spark:MASTER` and `spark://HOST:PORT` a master.

    Raises InputError where there is no PySpark or no Java, and where this process has a session
    on another master: Spark has one a process, and would hand it out without a word.
    """
    if not shutil.which("java") and not os.environ.get("JAVA_HOME"):
        raise InputError("--engine spark: needs Java 17 or later; install it or set JAVA_HOME")
    try:
        import ibis
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise InputError("--engine spark: is not installed; pip install 'tare[spark]'") from error
    # Else a worker takes the first python3 of PATH, which need not be of the same version.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings: dict[str, Any] = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    }
    if master := url.removeprefix("spark").removeprefix(":"):
        settings["spark.master"] = f"spark:{master}" if master.startswith("//") else master
        if master.startswith("local"):
            settings |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    try:
        session = SparkSession.builder.config(map=settings).getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
    except Exception as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"--engine {url}: Spark does not start: {reason}") from error
    at = session.sparkContext.master
    if at != settings.get("spark.master", at):
        raise InputError(f"--engine {url}: Spark runs on {at} in this process; stop it first")
    return ibis.pyspark.connect(session)


def read_parquet(backend: Any, files: Sequence[Path]) -> Table:
    """Files in the Hive folders of a result, whose names are columns of text."""
    from ibis.util import gen_name

    root = files[0].absolute().parents[len(("run", "block", "condition"))]
    reader = backend._session.read.option("basePath", str(root))
    frame = reader.option("mergeSchema", "true").parquet(*map(_exactly, files))
    name = gen_name("samples")
    frame.createOrReplaceTempView(name)
    table: Table = backend.table(name)
    return table


def _exactly(path: Path) -> str:
    """The path for Spark, which takes names as patterns: this pattern matches the file alone."""
    return re.sub(r"([\\*?{}\[\]])", r"\\\1", str(path.absolute()))
