# SPDX-License-Identifier: Apache-2.0
"""What guards a process or a result is written in one place: two would be mended in one of them."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def having(pattern: str, root: Path, suffix: str) -> set[str]:
    """The files below `root`, but tests, with a match outside of comments."""
    found = set()
    for path in root.rglob(f"*{suffix}"):
        name = path.relative_to(root).as_posix()
        if "test" in path.stem or "/tests/" in name or "/generated/" in name:
            continue
        text = path.read_text(encoding="utf-8").partition("#[cfg(all(test")[0]
        lines = text.partition("#[cfg(test)]\nmod tests")[0].splitlines()
        if any(re.search(pattern, line.partition("//")[0]) for line in lines):
            found.add(name)
    return found


@pytest.mark.parametrize(
    ("pattern", "files"),
    [
        # A descriptor is sent; the libraries read those that a program sends.
        (r"cmsg_type( =|:) libc::SCM_RIGHTS", {"shm/src/rights.rs"}),
        # A descriptor is copied: up, above the program's limit, and to where a link hides its own.
        (r"fcntl\(fd, libc::F_DUPFD", {"shm/src/syscall.rs"}),
        (r"MADV_WIPEONFORK", {"shm/src/memory.rs"}),
        # A library keeps something of each thread; vfork has no register for a call to it.
        (r"@GOTTPOFF", {"shm/src/thread.rs", "interpose/src/naked.rs"}),
        (r"SYS_pidfd_open", {"shm/src/peer.rs"}),
        (r"SO_PEERCRED|SO_PEERPIDFD", {"shm/src/peer.rs"}),
        (r"#\[panic_handler\]", {"interpose/src/panic.rs"}),
        (r"fn descriptors\(", {"command/src/processes.rs"}),
        # A segment is searched for by its name among the descriptors of a process.
        (r"memfd:", {"command/src/segments.rs"}),
        (r"F_ADD_SEALS", {"shm/src/segment.rs"}),
    ],
)
def test_rust(pattern: str, files: set[str]) -> None:
    assert having(pattern, ROOT / "crates", ".rs") == files


def test_the_thread_block_of_all_libraries_has_no_field_of_one() -> None:
    text = (ROOT / "crates/interpose/src/thread.rs").read_text(encoding="utf-8")
    (fields,) = re.findall(r"pub struct ThreadBlock<S> \{\n(.*?)\n\}", text, re.DOTALL)
    names = re.findall(r"^    (?:pub(?:\(crate\))? )?(\w+):", fields, re.MULTILINE)
    assert names == ["vfork_return", "borrowed", "pid", "tid", "state"]


@pytest.mark.parametrize(
    ("name", "model"),
    [("manifest.json", "samples/manifest.py"), ("verdicts.json", "report/result/verdicts.py")],
)
def test_json_of_a_result_is_read_by_its_model_alone(name: str, model: str) -> None:
    naming = having(f'"{name}"', ROOT / "python/tare", ".py")
    assert model in naming
    for path in naming - {model}:
        # Others look whether it is there, or remove it.
        text = (ROOT / "python/tare" / path).read_text(encoding="utf-8")
        assert not re.search(r"json\.load|read_json|json\.dump", text), path
