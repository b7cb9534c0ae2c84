# SPDX-License-Identifier: Apache-2.0
"""Spans of messages, which `tare-spans` decodes, as an Arrow file of samples."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tare.errors import InputError, TareError
from tare.native import native
from tare.samples.fetch import Fetched
from tare.trust import new_output

REASONS = {
    "bad_ids": "have no IDs of the right length",
    "bad_times": "do not end after their start",
    "too_many_names": "have more than 10,000 different names or attributes",
}


def decode(messages: Iterable[bytes], out: Path, attributes: Sequence[str] = ()) -> Fetched:
    """Writes the spans of all messages: requests of OTLP in protobuf or JSON, spans of Jaeger in
    protobuf. `attributes` are kept.

    Messages that cannot be read are counted in a warning. Raises InputError if no message has a
    span, TareError if the decoder fails; then no file is written.
    """
    with new_output(out) as file:
        name = f"/dev/fd/{file.fileno()}"
        with subprocess.Popen(
            [
                native("bin", "tare-spans"),
                "decode",
                *(f"--attribute={key}" for key in attributes),
                f"--out={name}",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=[file.fileno()],
        ) as process:
            assert process.stdin is not None
            try:
                with suppress(BrokenPipeError):
                    for message in messages:
                        process.stdin.write(len(message).to_bytes(4) + message)
                result, complaint = process.communicate()
            except BaseException:
                process.kill()
                # What is still in its buffer has no reader.
                with suppress(BrokenPipeError):
                    process.stdin.close()
                raise
        if process.returncode:
            reason = complaint.decode(errors="replace").strip().replace(name, str(out))
            raise TareError(reason or f"tare-spans decode: exit code {process.returncode}")
        counts = json.loads(result)
        warnings = tuple(_warnings(counts))
        if not counts["spans"]:
            raise InputError("; ".join(["no message of this time has a span", *warnings]))
    return Fetched(counts["spans"], warnings=warnings)


def _warnings(counts: dict[str, Any]) -> Iterator[str]:
    if refused := counts["refused_requests"]:
        yield f"{refused:,} messages left out: the first: {counts['first_refusal']}"
    if empty := counts["empty"]:
        yield f"{empty:,} messages have no span of OTLP or Jaeger"
    for key, reason in REASONS.items():
        if rejected := counts["rejected"][key]:
            yield f"{rejected:,} spans left out: they {reason}"
