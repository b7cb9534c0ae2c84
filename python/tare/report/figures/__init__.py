# SPDX-License-Identifier: Apache-2.0
"""The figures of a report: one file a figure, each a function from a layout and small tables."""
