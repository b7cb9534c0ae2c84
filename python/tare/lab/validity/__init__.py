# SPDX-License-Identifier: Apache-2.0
"""Validity checks of a run: one file per reason that makes it invalid.

Each `invalid_reason` returns the sentence of the manifest, or None. The reasons that only a layer
knows, by what it counted, are in the file of that layer.
"""
