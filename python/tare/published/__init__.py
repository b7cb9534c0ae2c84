# SPDX-License-Identifier: Apache-2.0
"""Analyses as others published them: shown beside a verdict, no part of it."""

from tare.published.best_fit import published_best_fit
from tare.published.pooled import published_test
from tare.published.text import paragraphs

__all__ = ["paragraphs", "published_best_fit", "published_test"]
