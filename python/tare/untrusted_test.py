# SPDX-License-Identifier: Apache-2.0
import os
from pathlib import Path

import pytest

from tare.errors import InputError
from tare.untrusted import is_relative, read_bytes, read_json, regular_files, toml_table


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "Expecting property name"),
        ("[" * 100_000, "levels deep"),
        ("[" * 40 + "]" * 40, "levels deep"),
        ("[NaN]", "not finite"),
        ('{"a": [-Infinity]}', "not finite"),
        ("1e308", "too large"),
        (f"[{10**30}]", "too large"),
        ("1" * 5_000, "4300 digits"),
    ],
)
def test_json_beyond_the_limits_is_refused(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text(text)
    with pytest.raises(ValueError, match=says):
        read_json(tmp_path / "file", 1_000_000)


def test_json_is_unicode(tmp_path: Path) -> None:
    (tmp_path / "file").write_text('["\\udcff", "\\ud83d\\ude42", true, 1, 0.5, null]')
    assert read_json(tmp_path / "file", 1_000) == ["?", "🙂", True, 1, 0.5, None]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"{'.'.join(['a'] * 1_000_000)} = 1", "more than 100 parts"),
        (f"[{' . '.join(['a'] * 101)}]", "more than 100 parts"),
        (f"b = {{ {'.'.join(['a', chr(34) * 2, chr(39) * 2] * 40)} = 1 }}", "more than 100 parts"),
        (f"{'.'.join(['a'] * 33)} = 1", "levels deep"),
        (f"a = {'{a=' * 40}1{'}' * 40}", "levels deep"),
        (f"a = {'[' * 100_000}", "levels deep"),
        ("a =\nb = 1", "line 1"),
        (f"a = {'1' * 5_000}", "4300 digits"),
    ],
)
def test_toml_beyond_the_limits_is_refused(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        toml_table(text)


def test_toml_within_the_limits_is_read() -> None:
    key, text = ".".join(["a"] * 31), "a-b_" * 1_000_000
    assert toml_table(f'c = "{text}"\n{key} = 1')["c"] == text
    assert toml_table("d = '1.2.3.4, 5.6.7.8'") == {"d": "1.2.3.4, 5.6.7.8"}


def test_only_regular_files_of_limited_size_are_read(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"12345")
    assert read_bytes(file, 5) == b"12345"
    with pytest.raises(ValueError, match="is larger than 0 MiB"):
        read_bytes(file, 4)
    (tmp_path / "link").symlink_to(file)
    with pytest.raises(ValueError, match="is a symbolic link"):
        read_bytes(tmp_path / "link", 5)
    os.mkfifo(tmp_path / "pipe")
    for other in (tmp_path / "pipe", tmp_path):
        with pytest.raises((ValueError, IsADirectoryError)):
            read_bytes(other, 5)


def test_links_below_a_folder_are_refused(tmp_path: Path) -> None:
    files = [tmp_path / "a" / "b" / "one", tmp_path / "two"]
    files[0].parent.mkdir(parents=True)
    for file in files:
        file.touch()
    os.mkfifo(tmp_path / "pipe")
    assert sorted(regular_files(tmp_path)) == files
    assert [*regular_files(tmp_path / "none")] == []
    (tmp_path / "a" / "b" / "link").symlink_to("/etc")
    with pytest.raises(InputError, match="a/b/link: is a symbolic link"):
        [*regular_files(tmp_path)]


@pytest.mark.parametrize("path", ["", "/etc", "a/../b", "..", ".", "a//b", "a/", "a\0b"])
def test_paths_that_lead_elsewhere_are_no_relative_ones(path: str) -> None:
    assert not is_relative(path)
    assert is_relative("logs/block=1/one.log")
