# SPDX-License-Identifier: Apache-2.0
"""Plans as text: files, options, errors that name the line, plans with comments, JSON Schema."""
