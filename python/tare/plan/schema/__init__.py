# SPDX-License-Identifier: Apache-2.0
"""The keys of a plan, their values, and what they need of each other."""
