# SPDX-License-Identifier: Apache-2.0
"""Requests without pauses. Locust's own CSV has totals: the file that ROWS names has requests."""

import csv
import os
from pathlib import Path

from locust import HttpUser, events, task  # type: ignore[import-not-found]

# Open until Locust ends.
file = Path(os.environ["ROWS"]).open("w", newline="")  # noqa: SIM115
rows = csv.writer(file)
rows.writerow(["start_time", "response_time", "ok"])


@events.request.add_listener  # type: ignore[untyped-decorator]
def add_row(start_time: float, response_time: float, exception: object, **_: object) -> None:
    """Locust's times are seconds since 1970, and milliseconds."""
    rows.writerow([start_time, response_time, exception is None])


@events.quit.add_listener  # type: ignore[untyped-decorator]
def finish(**_: object) -> None:
    """Locust may end without closing files."""
    file.close()


class User(HttpUser):  # type: ignore[misc]
    """A user who sends the next request when the last is answered."""

    @task  # type: ignore[untyped-decorator]
    def get(self) -> None:
        """One request."""
        self.client.get("/")
