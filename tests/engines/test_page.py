# SPDX-License-Identifier: Apache-2.0
"""What docs/engines.md shows runs on a result as it is."""

import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.report.synthetic import Synthetic

PAGE = Path(__file__).parents[2] / "docs" / "engines.md"


def test_the_example_describes_a_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Synthetic(requests=1_000, blocks=2, invalid=()).write(tmp_path / "results" / "a")
    for path in folder.glob("samples/**/*.parquet"):
        table = pq.ParquetFile(path).read()
        pq.write_table(table.drop_columns(["span"]), path)
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(example, names)
    assert 0 < names["found"].groups[1, "request"].requests < 1_000
    assert len(names["found"].distances["request"].runs) == 6
