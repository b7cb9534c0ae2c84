# SPDX-License-Identifier: Apache-2.0
"""Where Tare keeps what it learns about a machine from one experiment to the next."""

import os
from pathlib import Path


def state_folder() -> Path:
    """`$XDG_STATE_HOME/tare`, or `~/.local/state/tare`; it need not exist.

    A relative path counts as unset, as the XDG base directory specification says. Raises
    RuntimeError for a user without a home.
    """
    home = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (home if home.is_absolute() else Path.home() / ".local/state") / "tare"
