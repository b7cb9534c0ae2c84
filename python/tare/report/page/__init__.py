# SPDX-License-Identifier: Apache-2.0
"""Pages that are written: the report, its first screen, Markdown, the page of a calibration."""
