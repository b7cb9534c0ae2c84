# SPDX-License-Identifier: Apache-2.0
"""Engines that count samples where they lie: DuckDB, Spark, ClickHouse, Trino, through Ibis."""

from tare.samples.engines.binned import describe_histogram
from tare.samples.engines.describing import EVERY_KIND, describe
from tare.samples.engines.description import Described, Description
from tare.samples.engines.histogram import histogram
from tare.samples.engines.kept import Kept
from tare.samples.engines.opened import Engine, open_engine

__all__ = [
    "EVERY_KIND",
    "Described",
    "Description",
    "Engine",
    "Kept",
    "describe",
    "describe_histogram",
    "histogram",
    "open_engine",
]
