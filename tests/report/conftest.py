# SPDX-License-Identifier: Apache-2.0
"""What tests of reports share."""

import pytest

from tare.report.figures import canvas


@pytest.fixture
def one_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draws each figure for one width alone: figures take most of the time of a report."""
    monkeypatch.setattr(canvas, "LAYOUTS", canvas.LAYOUTS[:1])
