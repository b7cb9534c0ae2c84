# SPDX-License-Identifier: Apache-2.0
"""An experiment: its order, its blocks, what is stored, when it stops and how it goes on."""
