# SPDX-License-Identifier: Apache-2.0
"""Where the native parts are. The one place that knows; imports nothing but os."""

import os

_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_native")  # noqa: PTH100, PTH118, PTH120


def commit() -> str:
    """The commit that the native parts were built from, or `unknown`."""
    try:
        with open(native("", "commit"), encoding="utf-8") as file:  # noqa: PTH123
            return file.read().strip()
    except OSError:
        return "unknown"


def native(folder: str, name: str) -> str:
    """The path of a native part, whether or not it was built.

    `folder` is `bin`, `lib`, `include`, `java` or `web`; `name` the file in it.
    """
    return os.path.join(_FOLDER, folder, name)  # noqa: PTH118
