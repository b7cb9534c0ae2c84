# SPDX-License-Identifier: Apache-2.0
"""The load on services: its generators, and what they report.

What other generators print is read by `tare.samples.formats`.
"""
