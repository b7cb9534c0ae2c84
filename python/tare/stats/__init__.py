# SPDX-License-Identifier: Apache-2.0
"""Pure functions on arrays: no files, no clocks, no printing.

Every function takes one-dimensional arrays of finite numbers and raises `ValueError` on anything
else; a result that does not exist (the spread of one value) is `None`. The formulas
and their sources are in docs/internals/statistics.md.
"""
