# SPDX-License-Identifier: Apache-2.0
"""Tables of samples in DuckDB: columns, queries, and numbers of groups."""
