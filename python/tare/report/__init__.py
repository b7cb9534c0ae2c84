# SPDX-License-Identifier: Apache-2.0
"""HTML, Markdown and figures of a result folder."""

from tare.report.page.page import HTML, MARKDOWN, write
from tare.report.result.verdicts import VERDICTS

__all__ = ["HTML", "MARKDOWN", "VERDICTS", "write"]
