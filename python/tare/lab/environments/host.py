# SPDX-License-Identifier: Apache-2.0
"""The host itself, addressed over loopback."""

from collections.abc import Iterator
from contextlib import contextmanager

from tare.lab.launch import Place
from tare.lab.ports import free_port
from tare.lab.processes import Processes


def check() -> None:
    """The host is always there."""


@contextmanager
def enter(_processes: Processes, _name: str) -> Iterator[Place]:
    """Nothing to prepare."""
    yield Place("127.0.0.1", free_port=lambda: free_port("127.0.0.1"))
