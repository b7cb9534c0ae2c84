# SPDX-License-Identifier: Apache-2.0
"""Progress of an experiment on standard error: lines for a file, a bar for a terminal."""

from tare.cli.shared.streams import tell
from tare.terminal import markup, printable


def duration(seconds: float) -> str:
    """Minutes and seconds for a person."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


class Lines:
    """Progress for a file or a pipe: one plain line a step."""

    def begin(self, total_s: float) -> None:
        self.note(f"about {duration(total_s)}")

    def group(self, text: str) -> None:
        self.note(text)

    def within(self, elapsed_s: float) -> None:
        """A line a step is enough."""

    def group_done(self, estimated_s: float) -> None:
        """The next step says so."""

    def note(self, text: str) -> None:
        tell(text)

    def end(self) -> None:
        """Nothing to close."""


class Bar:
    """Progress for a terminal."""

    def __enter__(self) -> "Bar":
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self.bar.start()
        self.task = self.bar.add_task("starting", total=None)
        self.done_s = 0.0
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def begin(self, total_s: float) -> None:
        self.bar.update(self.task, total=total_s)

    def group(self, text: str) -> None:
        self.bar.update(self.task, description=markup(text))

    def within(self, elapsed_s: float) -> None:
        self.bar.update(self.task, completed=self.done_s + elapsed_s)

    def group_done(self, estimated_s: float) -> None:
        self.done_s += estimated_s
        self.bar.update(self.task, completed=self.done_s)

    def note(self, text: str) -> None:
        self.bar.console.print(printable(text, "\n"), markup=False, highlight=False)

    def end(self) -> None:
        self.bar.update(self.task, description="done")
