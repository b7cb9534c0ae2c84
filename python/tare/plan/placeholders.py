# SPDX-License-Identifier: Apache-2.0
"""Placeholders in commands and files: only known names, so that other braces stay untouched."""

import re
from collections.abc import Mapping


def fill(text: str, values: Mapping[str, object]) -> str:
    """Replaces `{name}` by its value for every name in `values`, and nothing else."""
    names = "|".join(map(re.escape, values))
    return re.sub(r"\{(" + names + r")\}", lambda match: str(values[match[1]]), text)
