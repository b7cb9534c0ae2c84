# SPDX-License-Identifier: Apache-2.0
"""Which differences can be detected on a machine, from added delays of known size."""
