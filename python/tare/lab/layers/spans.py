# SPDX-License-Identifier: Apache-2.0
"""A receiver of spans around the service's command, and the spans in the result."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tare.errors import TareError
from tare.lab.environments.launch import Launch, RunError
from tare.lab.layers.costs import counted
from tare.native import native
from tare.plan import expected
from tare.plan.schema.layers import SpansLayer

if TYPE_CHECKING:
    import pyarrow as pa

    from tare.plan.schema.layers import Layer

PROGRAM = native("bin", "tare-spans")
CONFIG_FILE = "OTEL_CONFIG_FILE"
TWO_RECEIVERS = Path(__file__).with_name("two_receivers.yaml")
COMPLETE = 0.99
"""The share of requests with a trace below which a warning says so."""


def check(layer: SpansLayer, plan_folder: Path) -> None:
    """Refuses an agent that does not exist. Raises TareError if tare-spans is not built."""
    if not Path(PROGRAM).is_file():
        raise TareError(f"{PROGRAM}: missing; build the native parts with 'make native'")
    if layer.agent is not None and not (plan_folder / layer.agent).is_file():
        raise expected(f"a file: {plan_folder / layer.agent} does not exist", "agent")


def put(layer: SpansLayer, launch: Launch) -> None:
    """Runs the command under tare-spans, which receives what the service exports."""
    launch.costs["spans"] = launch.folder / "costs-spans.arrow"
    launch.spans = launch.folder / "spans.arrow"
    words = [PROGRAM, "run", "--out", str(launch.spans), "--costs", str(launch.costs["spans"])]
    launch.command = [*words, "--", *launch.command]
    if layer.agent is not None:
        launch.add_java_agent(str((launch.plan_folder / layer.agent).absolute()))
    launch.variables.setdefault("OTEL_SERVICE_NAME", layer.service or layer.at or "service")
    if layer.sample is not None:
        launch.variables["OTEL_TRACES_SAMPLER"] = "parentbased_traceidratio"
        launch.variables["OTEL_TRACES_SAMPLER_ARG"] = f"{layer.sample:g}"
    if launch.traces_to is not None:
        _send_to_both(launch, launch.traces_to)


def _send_to_both(launch: Launch, endpoint: str) -> None:
    """Has the service send its spans to a pipeline, too. Raises RunError if it has a configuration
    file of its own."""
    if CONFIG_FILE in launch.variables or CONFIG_FILE in os.environ:
        raise RunError(f"{CONFIG_FILE} is set, and [collect] needs it; unset it")
    file = launch.folder / TWO_RECEIVERS.name
    file.write_bytes(TWO_RECEIVERS.read_bytes())
    launch.variables |= {CONFIG_FILE: str(file), "TARE_COLLECTOR_ENDPOINT": endpoint}


def invalid_reason(costs: "pa.Table | None") -> str | None:
    """Why the layer was not effective, by the `costs` that it wrote; None if it was."""
    if costs is not None and counted(costs, "spans"):
        return None
    return (
        "no span was received: check whether the service exports traces over OTLP, whether it ends"
        " on the stop signal before it is killed, and whether sample is too low"
    )


def of_load(spans: "pa.Table", started: int, ended: int) -> "pa.Table":
    """The spans of traces that began while the load was measured; times in ns.

    So requests of the warm-up and of the check whether the service is ready are left out.
    """
    import pyarrow.compute as pc

    first = _begins(spans)
    inside = first.filter(
        pc.and_(
            pc.greater_equal(first["start_ns_min"], started),
            pc.less_equal(first["start_ns_min"], ended),
        )
    )
    return spans.filter(pc.is_in(spans["trace_id"], inside["trace_id"].combine_chunks()))


def in_slices(spans: "pa.Table", requests: "pa.Table") -> "pa.Table":
    """The spans, with a column `slice`: the slice of the last request that began before the trace.

    Times of both are `start_ns`, in ns."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    if "slice" not in requests.column_names or not spans.num_rows:
        return spans
    known = requests.select(["start_ns", "slice"]).drop_null().sort_by("start_ns")
    if not known.num_rows:
        return spans
    first = _begins(spans)
    last = np.searchsorted(known["start_ns"].to_numpy(), first["start_ns_min"].to_numpy(), "right")
    slices = known["slice"].to_numpy()[np.maximum(last - 1, 0)]
    traces = first["trace_id"].combine_chunks()
    place = pc.index_in(spans["trace_id"], traces)
    found = pa.array(slices, known["slice"].type).take(place.combine_chunks())
    return spans.append_column("slice", found)


def _begins(spans: "pa.Table") -> "pa.Table":
    """`trace_id` and `start_ns_min`: when the first span of each trace began."""
    begin = spans.select(["trace_id", "start_ns"]).group_by("trace_id")
    return begin.aggregate([("start_ns", "min")])


def incomplete(layers: "Sequence[Layer]", spans: "pa.Table | None", requests: int) -> str | None:
    """A warning if fewer traces than successful `requests` arrived; None if the layer samples."""
    import pyarrow.compute as pc

    samples = [layer.sample for layer in layers if isinstance(layer, SpansLayer)]
    if spans is None or any(sample not in (None, 1) for sample in samples):
        return None
    traces = pc.count_distinct(spans["trace_id"]).as_py()
    if traces >= COMPLETE * requests:
        return None
    return (
        f"{traces:,} traces of {requests:,} requests: the service does not trace all of them, or"
        " its exporter drops spans; enlarge its queue (OTEL_BSP_MAX_QUEUE_SIZE), or lower the rate"
    )
