# SPDX-License-Identifier: Apache-2.0
"""Engines that count samples where they lie: DuckDB, Spark, ClickHouse, Trino, through Ibis."""

from tare.samples.engines.describe import Described, Description, describe

__all__ = ["Described", "Description", "describe"]
