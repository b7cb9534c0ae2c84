# SPDX-License-Identifier: Apache-2.0
"""Jaeger's spans from Elasticsearch: one document per line, with or without an export's
`{"_source": ...}`, or the response of a search."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tare.samples.formats.csv_file import opened
from tare.samples.formats.import_options import NOTHING, ImportOptions
from tare.samples.formats.jaeger import samples_of, ungrouped_of
from tare.samples.formats.json_file import lines, stored, whole
from tare.samples.formats.json_lines import require
from tare.samples.formats.source import Source
from tare.samples.sql import column as sql
from tare.samples.sql.engine import count_rows

if TYPE_CHECKING:
    from tare.samples.sql.table import Database

START = 4096


def read(backend: Database, path: Path, options: ImportOptions = NOTHING) -> Source:
    """Reads every span; a broken line is counted, a broken answer is refused."""
    with opened(path) as file:
        is_answer = b'"hits"' in file.read(START)
    broken = 0
    if is_answer:
        lazy = whole(backend, path)
        documents = lazy.select(of=lazy.json["hits"]["hits"].json_list.unnest())
    else:
        lazy = lines(backend, path)
        broken = count_rows(stored(backend, lazy.filter(lazy.json.isnull()), path))
        documents = lazy.select(of=lazy.json)
    spans = documents.select(span=sql.coalesce(documents.of["_source"], documents.of))
    spans = spans.filter(spans.span["spanID"].notnull())
    table = stored(backend, spans.select("span", process=spans.span["process"]), path)
    require(table, broken, path, "span")
    return Source(samples_of(table, options), broken, ungrouped=ungrouped_of(table, options))
