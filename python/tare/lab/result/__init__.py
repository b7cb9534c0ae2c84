# SPDX-License-Identifier: Apache-2.0
"""The folder of a result: what is written there, and who could change it."""
