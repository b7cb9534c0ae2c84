# SPDX-License-Identifier: Apache-2.0
"""What the runs show: differences, their intervals and p-values, before any rule decides."""
