# SPDX-License-Identifier: Apache-2.0
"""One file per section of the report, and the order of them all."""
