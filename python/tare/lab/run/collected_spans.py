# SPDX-License-Identifier: Apache-2.0
"""The spans of a run: what Tare's receiver got, or what the plan's pipeline has stored of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from tare.lab.environments.launch import RunError
from tare.lab.layers.spans import in_slices, incomplete, of_load
from tare.lab.pipeline import comparison
from tare.lab.pipeline.pipeline import Delivery, Pipeline
from tare.lab.result.measured import Measured
from tare.lab.result.streams import read_stream
from tare.lab.start.runs import Run
from tare.plan.schema.layers import SpansLayer
from tare.samples.manifest import Collected

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class CollectedSpans:
    """The ways of the spans of a group's runs."""

    pipeline: Pipeline | None
    """None if the result has the spans of Tare's receiver."""
    _deliveries: dict[int, Delivery] = field(default_factory=dict)

    def open(self, run: Run, work: Path, new_log: Callable[[str], Path]) -> None:
        """Starts the way of a run's spans, if its services have any. Raises RunError."""
        traced = any(isinstance(layer, SpansLayer) for layer in run.condition.layers)
        if self.pipeline is not None and traced:
            delivery = self.pipeline.open(run.environment, work, new_log)
            self._deliveries[run.number] = delivery
            run.traces_to = delivery.endpoint

    def close(
        self,
        run: Run,
        kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """Imports the spans of a run whose services have ended, unless there is an error."""
        delivery = self._deliveries.get(run.number)
        if delivery is None:
            return
        if kind is not None:
            delivery.close()
            return
        try:
            delivery.finish()
        except RunError as error:
            run.fail(str(error))

    def of_run(self, run: Run) -> tuple[pa.Table | None, Collected | None]:
        """The spans of a run's load, and whether the pipeline stored what was received.

        Adds a warning to what was measured if spans are missing.
        """
        assert run.measured is not None
        received = _received(run)
        found = None
        spans = received
        if (delivery := self._deliveries.get(run.number)) and received is not None:
            spans = delivery.spans()
            none = received.slice(0, 0)
            found = delivery.compared(received, none if spans is None else spans)
        spans = None if spans is None else _of_load(run.measured, spans)
        answered = run.measured.requests - run.measured.errors
        warnings = [incomplete(run.condition.layers, spans, answered)]
        if found is not None and self.pipeline is not None:
            warnings.append(comparison.incomplete(self.pipeline.settings.pipeline, found))
        if told := [line for line in warnings if line]:
            run.measured = replace(run.measured, notes=[*run.measured.notes, *told])
        return spans, found


def _received(run: Run) -> pa.Table | None:
    """What the services of a run exported; None without a layer for spans, or without spans."""
    import pyarrow as pa

    paths = [launch.spans for launch in run.launches.values() if launch.spans is not None]
    tables = [table for path in paths if (table := read_stream(path)) is not None]
    return pa.concat_tables(tables, promote_options="permissive") if tables else None


def _of_load(found: Measured, spans: pa.Table) -> pa.Table | None:
    """The spans of traces that began during the load."""
    started, ended = found.extent()
    if started is None or ended is None:
        return None
    return in_slices(of_load(spans, started, ended), found.samples)
