# SPDX-License-Identifier: Apache-2.0
"""Tare weighs what stands between a service and its users."""

__version__ = "0.1.0"
