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
        # Descriptors are sent and received, and found in messages of the program.
        (r"SCM_RIGHTS", {"shm/src/rights.rs"}),
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


# Ways to open a file for writing; files of `tempfile` are private and new.
WRITES = (
    r"\.write_(?:text|bytes)\(|\.touch\("
    r"|(?<!fd)open\(.*[\"'](?:[wax][bt+]*|r[bt]?\+[bt]?)[:\"']"
    r"|os\.open\((?!.*O_(?:RDONLY|PATH)\b)"
)
OF_A_RUN = "in a folder of the run, made in a result that no other user can change"
OF_AN_ENVIRONMENT = "in a new folder in the runtime directory, which only this user can write to"
OTHER_WRITERS = {
    "cli/__init__.py": "/dev/null",
    "cli/shared/streams.py": "/dev/null",
    "lab/doctor/containers.py": "in a new folder of tempfile",
    "lab/doctor/examine.py": "/dev/null",
    "lab/doctor/kvm.py": "a device",
    "lab/environments/bundle.py": OF_AN_ENVIRONMENT,
    "lab/environments/cluster/files.py": "an archive in a file of tempfile",
    "lab/environments/container.py": f"a log {OF_A_RUN}",
    "lab/environments/container_in_vm.py": "an archive in memory",
    "lab/environments/guest/agent.py": "in a guest, where it cannot import tare",
    "lab/environments/guest/qemu.py": OF_AN_ENVIRONMENT,
    "lab/environments/pod.py": OF_AN_ENVIRONMENT,
    "lab/environments/pod_files.py": OF_AN_ENVIRONMENT,
    "lab/environments/pods_across_nodes.py": OF_AN_ENVIRONMENT,
    "lab/environments/running.py": OF_AN_ENVIRONMENT,
    "lab/environments/vm.py": f"{OF_AN_ENVIRONMENT}; disks {OF_A_RUN}",
    "lab/layers/proxy.py": OF_A_RUN,
    "lab/layers/spans.py": OF_A_RUN,
    "lab/load/tare_load.py": OF_A_RUN,
    "lab/pipeline/components.py": "in a new folder of tempfile",
    "lab/processes/supervisor.py": f"a program of its own, without atomic_files; {OF_A_RUN}",
    "lab/start/service.py": OF_A_RUN,
    "running/segments.py": "reads memory that it has checked",
    "samples/sql/spill.py": "in a new folder of tempfile",
    "untrusted.py": "reads",
}
"""What else opens files for writing, and why no other user can choose which file is written.
`tare.lab.result.file_ownership` checks results before anything is written to them."""


def test_files_are_opened_for_writing_by_one_module() -> None:
    assert having(WRITES, ROOT / "python/tare", ".py") == {"atomic_files.py", *OTHER_WRITERS}


DELETES = r"\.(?:unlink|rmdir)\(|os\.(?:remove|unlink|rmdir)\(|rmtree\("
OTHER_DELETERS = {
    "lab/doctor/cgroups.py": "a control group that it made",
    "lab/doctor/examine.py": "a new folder of tempfile",
    "lab/environments/container.py": f"what a container deleted {OF_A_RUN}",
    "lab/pipeline/components.py": "a new folder of tempfile",
    "lab/processes/supervisor.py": "control groups, which the kernel removes only if empty",
    "lab/result/folder.py": OF_A_RUN,
    "lab/run/experiment.py": "in a result that no other user can change",
    "running/cgroups.py": "control groups, which the kernel removes only if empty",
    "running/created_resources.py": "in a directory that only this user can write to",
    "samples/sql/spill.py": "a folder whose owner and inode it has checked",
}


def test_files_are_deleted_by_one_module() -> None:
    assert having(DELETES, ROOT / "python/tare", ".py") == {"atomic_files.py", *OTHER_DELETERS}


@pytest.mark.parametrize(
    ("line", "writes"),
    [
        ('path.open("wb")', True),
        ('gzip.open(path, "xt", encoding="utf-8")', True),
        ("open(path, mode='r+b')", True),
        ("os.open(path, os.O_WRONLY)", True),
        ("os.open(path, flags)", True),
        ("log.touch()", True),
        ('os.fdopen(descriptor, "wb")', False),
        ('path.open("rb")', False),
        ("os.open(path, os.O_RDONLY | flags)", False),
        ("regular_file(path, os.O_WRONLY)", False),
    ],
)
def test_ways_to_write_are_found(line: str, writes: bool) -> None:
    assert bool(re.search(WRITES, line)) == writes
