# SPDX-License-Identifier: Apache-2.0
"""Two users, sixty requests in all; a row for each, in the file that ROWS names."""

import csv
import os
from pathlib import Path

from locust import HttpUser, events, task  # type: ignore[import-not-found]
from locust.exception import StopUser  # type: ignore[import-not-found]

# Open until Locust ends.
file = Path(os.environ["ROWS"]).open("w", newline="", buffering=1)  # noqa: SIM115
rows = csv.writer(file)
rows.writerow(["start_time", "response_time", "ok"])


@events.request.add_listener  # type: ignore[untyped-decorator]
def written(start_time: float, response_time: float, exception: object, **_: object) -> None:
    """One row of the format that docs/formats/inputs.md names `locust`."""
    rows.writerow([start_time, response_time, exception is None])


class Requests(HttpUser):  # type: ignore[misc]
    """Half of the requests."""

    def on_start(self) -> None:
        """As many as there are left to send."""
        self.left = 30

    @task  # type: ignore[untyped-decorator]
    def get(self) -> None:
        """One request."""
        if not self.left:
            raise StopUser
        self.left -= 1
        self.client.get("/")
