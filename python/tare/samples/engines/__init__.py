# SPDX-License-Identifier: Apache-2.0
"""Engines that count samples where they lie: DuckDB, Spark, ClickHouse, Trino, through Ibis."""

from tare.samples.engines.binned import describe_histogram
from tare.samples.engines.describe import describe
from tare.samples.engines.description import Described, Description
from tare.samples.engines.histogram import histogram

__all__ = ["Described", "Description", "describe", "describe_histogram", "histogram"]
