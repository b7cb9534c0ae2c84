# SPDX-License-Identifier: Apache-2.0
"""What decides: vetoes, gates, reasons and warnings."""
