# SPDX-License-Identifier: Apache-2.0
"""The pipeline of tracing programs that a plan collects spans with."""
