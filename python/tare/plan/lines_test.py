# SPDX-License-Identifier: Apache-2.0
import tomllib
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tare.plan.lines import Path, key_lines, line_of

TEXT = """\
# a comment
name = "x"  # line 2
a.b.c = 1

[service]
command = \"\"\"
[not.a.table]
k = 1
\"\"\"
"odd key".'other' = [
  1,
  # two follows
  { deep = [{ er = 2 }], x.y = 3 },
]

[[conditions]]
name = "one"
[[conditions.layers]]
type = "hook"
[[conditions.layers]]
type = "env"
variables = { A = "1" }
[conditions.layers.more]
q = 1
[[conditions]]
name = "two"
layers = [
  { type = "wrap" },
  { type = "env", variables = { A = "] # {" } }, # }
]
"""


def test_nested_arrays_of_tables_and_inline_tables() -> None:
    lines = key_lines(TEXT)
    assert lines["name",] == 2
    assert lines["a", "b", "c"] == 3
    assert lines["service",] == 5
    assert lines["service", "odd key", "other", 0] == 11
    assert lines["service", "odd key", "other", 1, "deep", 0, "er"] == 13
    assert lines["service", "odd key", "other", 1, "x", "y"] == 13
    assert lines["conditions", 0, "layers", 0, "type"] == 19
    assert lines["conditions", 0, "layers", 1, "variables", "A"] == 22
    assert lines["conditions", 0, "layers", 1, "more", "q"] == 24
    assert lines["conditions", 1] == 25
    assert lines["conditions", 1, "layers", 1, "variables", "A"] == 29
    assert ("service", "k") not in lines


def test_a_key_that_is_not_written_has_the_line_of_what_is_around_it() -> None:
    lines = key_lines(TEXT)
    assert line_of(("conditions", 1, "layers", 0, "command"), lines) == 28
    assert line_of(("nothing",), lines) == 1


def every_path(data: Any, path: Path = ()) -> set[Path]:
    items: Any = ()
    if isinstance(data, dict):
        items = data.items()
    elif isinstance(data, list):
        items = enumerate(data)
    return {path}.union(*(every_path(value, (*path, key)) for key, value in items)) - {()}


def test_every_path_of_the_parsed_data_has_a_line() -> None:
    assert set(key_lines(TEXT)) == every_path(tomllib.loads(TEXT))


@settings(deadline=None)  # a slow first import is not a fault
@given(st.recursive(st.integers(0, 9), lambda inner: st.lists(inner, max_size=3), max_leaves=8))
def test_arrays_of_any_depth(value: Any) -> None:
    text = f"[t]\nk = {value}\n"
    assert set(key_lines(text)) == every_path(tomllib.loads(text))
