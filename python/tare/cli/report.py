# SPDX-License-Identifier: Apache-2.0
import typer


def register(app: typer.Typer) -> None:
    """Adds `tare report`."""
