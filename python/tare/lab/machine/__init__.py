# SPDX-License-Identifier: Apache-2.0
"""The machine: what it is, and what it did during each run."""
