# SPDX-License-Identifier: Apache-2.0
"""Files that are written whole or not at all."""

import os
from pathlib import Path


def replace(path: Path, text: str) -> None:
    """Puts `text` in the place of a file: what was there stays until all of it is on disk.

    An OSError names the file.
    """
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with fresh.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError as error:
        error.filename = str(path)
        raise
    finally:
        fresh.unlink(missing_ok=True)
