# SPDX-License-Identifier: Apache-2.0
"""Where the native parts are. The one place that knows; imports nothing but os."""

import os

_FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "_native")  # noqa: PTH100, PTH118, PTH120


def native(folder: str, name: str) -> str:
    """The path of a native part, whether or not it was built.

    `folder` is `bin`, `lib`, `include`, `java` or `web`; `name` the file in it.
    """
    return os.path.join(_FOLDER, folder, name)  # noqa: PTH118
