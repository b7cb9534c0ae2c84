# SPDX-License-Identifier: Apache-2.0
"""Text of /proc, in which other users choose names of processes, mount points and groups."""

import os


def proc_lines(data: bytes) -> list[str]:
    r"""The lines of a file in /proc.

    Names have no "\n", but every other character at which `splitlines` and text files end a line.
    """
    return [line for line in os.fsdecode(data).split("\n") if line]
