# SPDX-License-Identifier: Apache-2.0
"""Describes runs: what is cut, left out, counted and summarised before a verdict."""
