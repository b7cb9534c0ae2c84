# SPDX-License-Identifier: Apache-2.0
"""What the report reads of a result folder, its verdicts, and the history of verdicts."""
