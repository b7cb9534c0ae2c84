# SPDX-License-Identifier: Apache-2.0
"""Reads result folders and files: which runs there are, and their requests in order of time."""
