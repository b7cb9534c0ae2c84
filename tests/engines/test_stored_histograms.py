# SPDX-License-Identifier: Apache-2.0
"""Histograms of a result are counted once, and again where its samples have changed."""

import hmac
import json
import os
from contextlib import suppress
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.report.synthetic import Synthetic

from tare.errors import InputError
from tare.samples.engines import histogram, stored_histograms
from tare.samples.read.result_folders import read_result


def test_a_histogram_is_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted = []

    def noted(samples: Any) -> Any:
        counted.append(samples)
        return histogram(samples)

    monkeypatch.setattr("tare.samples.engines.describing.EXACT_ROWS", {"duckdb": 99})
    monkeypatch.setattr(stored_histograms, "histogram", noted)
    folder = Synthetic(requests=300, blocks=2, invalid=()).write(tmp_path / "result")
    first = read_result(folder)
    looks = len(counted)
    assert looks == 1 + len(first.cuts)
    again = read_result(folder)
    assert len(counted) == looks
    assert again.runs == first.runs
    (stored, *_) = (folder / stored_histograms.HISTOGRAMS).iterdir()
    stored.write_bytes(b"cut off")
    assert read_result(folder).runs == first.runs
    assert len(counted) == looks + 1
    monkeypatch.setattr(stored_histograms, "FORMAT", stored_histograms.FORMAT + 1)
    read_result(folder)
    assert len(counted) == 2 * looks + 1
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["runs"].pop()
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert len(read_result(folder).runs) == len(first.runs) - 1
    assert len(counted) > 2 * looks + 1


@pytest.mark.parametrize("others", ["rows", "key", "place"])
def test_a_histogram_that_this_user_has_not_counted_is_not_read(
    others: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A result of another user may have any counts, of another's key or of other samples."""
    monkeypatch.setattr("tare.samples.engines.describing.EXACT_ROWS", {"duckdb": 99})
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = Synthetic(requests=300, blocks=2, invalid=()).write(tmp_path / "result")
    first = read_result(folder)
    files = sorted((folder / stored_histograms.HISTOGRAMS).iterdir())
    stored = [file.read_bytes() for file in files]
    digest = sha256().digest_size
    if others == "place":
        stored = [*stored[1:], stored[0]]
    for file, data in zip(files, stored, strict=True):
        if others == "place":
            file.write_bytes(data)
            continue
        rows = pq.read_table(BytesIO(data[digest:]))
        none = pa.array([0] * rows.num_rows, pa.int64())
        forged = BytesIO()
        pq.write_table(
            rows.set_column(rows.column_names.index("requests"), "requests", none), forged
        )
        code = data[:digest]
        if others == "key":
            code = hmac.digest(b"other", file.name.encode() + forged.getvalue(), "sha256")
        file.write_bytes(code + forged.getvalue())
    assert read_result(folder).runs == first.runs


def test_the_key_of_histograms_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tare.samples.engines.describing.EXACT_ROWS", {"duckdb": 99})
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = Synthetic(requests=300, blocks=2, invalid=()).write(tmp_path / "result")
    read_result(folder)
    key = tmp_path / "state" / "tare" / stored_histograms.KEY
    assert (key.stat().st_mode & 0o777, key.stat().st_size) == (0o600, 32)
    # Without a place for it, requests are counted each time.
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")
    (tmp_path / "result" / stored_histograms.HISTOGRAMS).rename(tmp_path / "before")
    read_result(folder)
    assert not (folder / stored_histograms.HISTOGRAMS).exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a link of another user")
def test_a_result_that_is_swapped_for_a_link_leads_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Synthetic(requests=300, blocks=2, invalid=()).write(tmp_path / "result")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def swaps(samples: Any) -> SimpleNamespace:
        counted = histogram(samples).to_pyarrow()
        if not folder.is_symlink():
            folder.rename(tmp_path / "before")
            folder.symlink_to(elsewhere)
            os.lchown(folder, 1234, 1234)
        return SimpleNamespace(to_pyarrow=lambda: counted)

    monkeypatch.setattr("tare.samples.engines.describing.EXACT_ROWS", {"duckdb": 99})
    monkeypatch.setattr(stored_histograms, "histogram", swaps)
    with suppress(InputError):
        read_result(folder)
    assert folder.is_symlink()
    assert not [*elsewhere.iterdir()]
