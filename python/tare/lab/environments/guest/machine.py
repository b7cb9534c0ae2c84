# SPDX-License-Identifier: Apache-2.0
"""What boots a guest."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Boot:
    """A guest that is about to boot."""

    name: str
    folder: Path
    """Its own, for whatever the machine needs."""
    tap: str
    """The interface of this host that is its network."""
    memory: int
    """Bytes."""
    cpus: int
    disks: Sequence[Path]
    """Images of this host."""
    first: Sequence[str]
    """Its first process: a file of this host, and words."""


class Machine(ABC):
    """A kind of machine, without state."""

    interface: str
    """What the guest calls its network."""
    disk: str
    """What the guest calls its disks, up to the letter that numbers them."""
    most_cpus: int | None = None

    @abstractmethod
    def check(self) -> None:
        """Raises `tare.plan.expected` with what this machine lacks."""

    @abstractmethod
    def command(self, boot: Boot) -> list[str]:
        """The command that is the guest while it runs, and prints its console.

        Raises RunError if files that it needs cannot be made.
        """
