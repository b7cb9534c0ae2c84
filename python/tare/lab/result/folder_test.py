# SPDX-License-Identifier: Apache-2.0
import json
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tare.errors import InputError
from tare.lab.result.folder import ResultFolder, RunKey, completed, count_look
from tare.lab.result.streams import of_condition
from tare.samples.manifest import Manifest
from tare.tables import arrow_schema

MANIFEST = {"format": 1, "baseline": "a", "budget": 0.03, "blocks": 8, "runs": []}
KEY = RunKey("x-1", "host", "hook", 3, 7, "machine-hash")
CATEGORY = pa.dictionary(pa.int32(), pa.string())


def samples(count: int) -> pa.Table:
    names = pa.array(["plain", "hook"] * count).cast(CATEGORY)
    return pa.table({"condition": names, "seq": range(2 * count), "status": [200] * 2 * count})


def test_a_run_is_written_with_what_the_lab_knows(tmp_path: Path) -> None:
    folder = ResultFolder(tmp_path)
    folder.write("samples", of_condition(samples(5), "hook"), KEY)
    path = tmp_path / "samples/condition=hook/block=3/run=7/samples.parquet"
    table = pq.read_table(path, partitioning=None)
    assert table["seq"].to_pylist() == [1, 3, 5, 7, 9]
    for name, value in vars(KEY).items():
        assert set(table[name].to_pylist()) == {value}
    assert list(path.parent.iterdir()) == [path]


def test_columns_are_typed_and_ordered_as_declared() -> None:
    table = completed("samples", samples(2), KEY)
    declared = arrow_schema("samples")
    assert table.schema == pa.schema([f for f in declared if f.name in table.column_names])
    assert table["status"].type == pa.int32()


def test_the_manifest_is_replaced_as_a_whole(tmp_path: Path) -> None:
    folder = ResultFolder(tmp_path / "new" / "result")
    folder.create("plan", Manifest.model_validate(MANIFEST))
    folder.manifest.warnings.append("one")
    folder.save()
    assert json.loads((folder.path / "manifest.json").read_text())["warnings"] == ["one"]
    assert not list(folder.path.glob("*.new"))
    folder.close()
    with pytest.raises(InputError, match="not a result folder"):
        ResultFolder(tmp_path).open()


def test_a_folder_with_anything_in_it_is_left_as_it_is(tmp_path: Path) -> None:
    thesis = tmp_path / "work" / "thesis.txt"
    thesis.parent.mkdir()
    thesis.write_text("years")
    with pytest.raises(InputError, match=f"{tmp_path}: is not empty; choose another .* --out"):
        ResultFolder(tmp_path).create("plan", Manifest.model_validate(MANIFEST))
    assert [thesis] == [path for path in tmp_path.rglob("*") if path.is_file()]
    assert thesis.read_text() == "years"


def test_a_result_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    with closing(ResultFolder(tmp_path / "result")) as first:
        first.create("plan", Manifest.model_validate(MANIFEST))
        second = ResultFolder(first.path)
        with closing(second), pytest.raises(InputError, match="another tare run uses this folder"):
            second.open()
    with closing(ResultFolder(first.path)) as third:
        third.open()
        assert third.manifest == first.manifest


def test_keys_that_an_older_version_did_not_write_have_their_meaning_then(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").touch()
    (tmp_path / "manifest.json").write_text(json.dumps(MANIFEST))
    with closing(ResultFolder(tmp_path)) as folder:
        folder.open()
        begun = folder.manifest
    assert (begun.control, begun.limits, begun.smoke, begun.looks) == (None, [], False, [])


@pytest.mark.parametrize("manifest", ["{}", "[]", '{"format": 2}', "\udcff"])
def test_what_is_no_manifest_of_this_format_is_not_resumed(tmp_path: Path, manifest: str) -> None:
    (tmp_path / "plan.toml").touch()
    (tmp_path / "manifest.json").write_text(manifest, errors="surrogateescape")
    with (
        closing(ResultFolder(tmp_path)) as folder,
        pytest.raises(InputError, match=r"manifest\.json: "),
    ):
        folder.open()


def test_a_result_stays_held_while_its_plan_is_replaced(tmp_path: Path) -> None:
    with closing(ResultFolder(tmp_path / "result")) as first:
        first.create("plan", Manifest.model_validate(MANIFEST))
        first.replace_plan("other plan")
        assert (first.path / "plan.toml").read_text() == "other plan"
        assert sorted(file.name for file in first.path.iterdir()) == ["manifest.json", "plan.toml"]
        second = ResultFolder(first.path)
        with closing(second), pytest.raises(InputError, match="another tare run uses this folder"):
            second.open()
    with closing(ResultFolder(first.path)) as third:
        third.open()


def test_a_look_is_counted_once_for_a_number_of_blocks(tmp_path: Path) -> None:
    result = tmp_path / "result"
    with closing(ResultFolder(result)) as folder:
        folder.create("plan", Manifest.model_validate(MANIFEST))
        with pytest.raises(InputError, match="another tare run uses this folder"):
            count_look(result)
    count_look(result)
    count_look(result)
    manifest = json.loads((result / "manifest.json").read_text())
    assert manifest["looks"] == [8]
    (result / "manifest.json").write_text(json.dumps(manifest | {"blocks": 16}))
    count_look(result)
    assert json.loads((result / "manifest.json").read_text())["looks"] == [8, 16]
