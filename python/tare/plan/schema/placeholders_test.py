# SPDX-License-Identifier: Apache-2.0
import pytest

from tare.plan.schema.placeholders import SERVICE_NAMES, misspelt_name, unknown_name


@pytest.mark.parametrize(
    "text",
    ["{port}", "sh -c 'echo ${HOME} {port}'", "{{name}}", '{"a": {}}', "a{2}", "{ print }", "{}"],
)
def test_braces_of_other_languages_are_not_names(text: str) -> None:
    assert unknown_name(text, SERVICE_NAMES) is None


def test_an_unknown_name_is_found_after_known_ones() -> None:
    assert unknown_name("--at {address}:{prot}", SERVICE_NAMES) == "prot"


@pytest.mark.parametrize(
    ("name", "right"),
    [("prot", "port"), ("adress", "address"), ("addres", "address"), ("dri", "dir")],
)
def test_a_misspelt_name_is_found_in_a_file(name: str, right: str) -> None:
    assert misspelt_name(f"listen {{{name}}};", SERVICE_NAMES) == (name, right)


@pytest.mark.parametrize("name", ["rid", "post", "id", "path", "plane", "user", "part", "ports"])
def test_a_files_own_names_stay(name: str) -> None:
    assert misspelt_name(f"/{{{name}}}", SERVICE_NAMES) is None
