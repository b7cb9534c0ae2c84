# SPDX-License-Identifier: Apache-2.0
"""Containers of `tare run`: what they share with the host, and their limits."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.lab.conftest import Experiment
from tests.lab.leftovers import of_containers
from tests.lab.made import making
from tests.lab.root_files import make_root
from tests.lab.test_environments import wait_until_ended
from tests.rights import may_run_containers

from tare.errors import InputError
from tare.lab import environments
from tare.lab.environments.container import Container
from tare.lab.environments.environment import Program
from tare.lab.environments.fingerprint import fingerprint
from tare.lab.environments.launch import RunError
from tare.lab.processes.processes import Processes
from tare.lab.start import commands
from tare.plan import parse

pytestmark = pytest.mark.skipif(
    not may_run_containers(), reason="containers need root and the package runc"
)
Make = Callable[..., Container]


@pytest.fixture
def make(processes: Processes, tmp_path: Path) -> Iterator[Make]:
    """Makes a container environment with some settings, and a folder copied in."""
    with making(Container, "container", processes) as prepared:

        def make(**settings: object) -> Container:
            container = prepared(**settings)
            container.copy_in([inside(tmp_path)])
            return container

        yield make


def inside(tmp_path: Path) -> Path:
    folder = tmp_path / "inside"
    folder.mkdir(exist_ok=True)
    return folder


def run(container: Container, script: str, tmp_path: Path) -> str:
    """What a shell in the container prints until it ends."""
    log = tmp_path / "log"
    cpus = [max(os.sched_getaffinity(0))]
    words = ["sh", "-c", script]
    process = container.start(Program("service", words, inside(tmp_path), log, cpus))
    wait_until_ended(container.processes, process)
    return log.read_text()


def test_files_of_the_host_are_read_only_but_var_has_a_layer(make: Make, tmp_path: Path) -> None:
    printed = run(
        make(), "touch /usr/tare-try; echo new >/var/tare-try && cat /var/tare-try", tmp_path
    )
    assert "Read-only file system" in printed
    assert printed.endswith("new\n")
    assert not Path("/var/tare-try").exists()


def test_a_container_has_its_own_processes_folders_and_name(make: Make, tmp_path: Path) -> None:
    (tmp_path / "hidden").touch()
    printed = run(make(), "ls ..; ls /proc | grep -c '^[0-9]'; hostname", tmp_path)
    *seen, count, name = printed.splitlines()
    assert seen == ["inside", "log"]
    assert int(count) < 10
    assert name.startswith(f"tare-{os.getpid()}-")


def test_files_that_words_or_variables_name_are_there_read_only(make: Make, tmp_path: Path) -> None:
    library, data = tmp_path / "agent.so", tmp_path / "data"
    library.write_text("a library")
    data.mkdir()
    (data / "file").write_text("data")
    script = f'cat "${{AGENT#x=}}" {data}/file; echo more >>{data}/file'
    log = tmp_path / "log"
    variables = {"AGENT": f"x={library}", "OTHER": "/tmp:/tmp/nowhere"}
    program = Program("service", ["sh", "-c", script], inside(tmp_path), log, [0], variables)
    container = make()
    wait_until_ended(container.processes, container.start(program))
    printed = log.read_text()
    assert printed.startswith("a librarydata")
    assert "Read-only file system" in printed


def test_a_program_has_the_cpus_of_the_placement(make: Make, tmp_path: Path) -> None:
    printed = run(make(), "sed -n 's/^Cpus_allowed_list:\\s*//p' /proc/self/status", tmp_path)
    assert printed == f"{max(os.sched_getaffinity(0))}\n"


def test_what_is_written_to_a_layer_reaches_the_host_at_the_end(make: Make, tmp_path: Path) -> None:
    folder = inside(tmp_path)
    for name in ("kept", "changed", "deleted"):
        (folder / name).write_text("old")
    container = make(files="layered")
    run(
        container,
        "printf new >changed; rm deleted; mkdir more; printf new >more/added; stat -f -c %T .",
        tmp_path,
    )
    assert (tmp_path / "log").read_text() == "overlayfs\n"
    assert sorted(path.name for path in folder.iterdir()) == ["changed", "deleted", "kept"]
    container.copy_out([folder])
    texts = {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*")
        if path.is_file()
    }
    assert texts == {"kept": "old", "changed": "new", "more/added": "new"}
    container.stop()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["inside", "log", "supervisor.log"]


def test_two_programs_have_containers_of_their_own_in_one_network(
    make: Make, tmp_path: Path
) -> None:
    container = make(network="bridge")
    seen = set()
    for name in ("service", "service/proxy"):
        log = tmp_path / name.replace("/", "-")
        words = ["sh", "-c", "readlink /proc/self/ns/net /proc/self/ns/pid /proc/self/ns/mnt"]
        process = container.start(Program(name, words, Path("/"), log, [0]))
        wait_until_ended(container.processes, process)
        seen.add(tuple(log.read_text().splitlines()))
    (net, *others), (same_net, *more) = seen
    assert net == same_net != str(Path("/proc/self/ns/net").readlink())
    assert not {*others} & {*more}


@pytest.mark.parametrize("name", ["root", "a b:c,d\\e"])
def test_a_service_has_the_files_of_its_root(
    make: Make, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_HOST", "yes")
    root = tmp_path / name
    make_root(root)
    before = sorted(root.rglob("*"))
    container = make(root=str(root))
    script = "cat /etc/only; echo ${OF_HOST-none}; : >/new && echo written; : >kept; echo $PATH"
    only, variable, written, path = run(container, script, tmp_path).splitlines()
    assert (only, variable, written) == ("in the image", "none", "written")
    assert path.startswith("/usr/local/sbin:")
    assert (inside(tmp_path) / "kept").exists()
    assert sorted(root.rglob("*")) == before
    container.stop()
    assert not of_containers(os.getpid())
    assert f"tare-{os.getpid()}-" not in Path("/proc/self/mounts").read_text()


def test_a_root_starts_at_the_folder_of_the_plan_and_must_exist(tmp_path: Path) -> None:
    text = """\
name = "try"
budget = "3%"
service = { command = "only-there {port}", directory = "/only/there" }
environments = [{ type = "container", root = "files" }]
[[conditions]]
name = "plain"
[[conditions]]
name = "again"
"""
    plan = parse(text, "try.toml", tmp_path)
    with pytest.raises(InputError, match=rf"^try\.toml:4: .*root.*{tmp_path}/files does not exist"):
        environments.check(plan)
    (tmp_path / "files").mkdir()
    environments.check(plan)
    commands.check(plan)  # it cannot know the programs there


def test_hook_proxy_and_link_work_in_containers(experiment: Experiment) -> None:
    experiment.write_plan_of_layers('["container"]')
    done = experiment.measure(blocks=1)
    assert done.returncode == 0, done.stderr
    assert [run["reason"] for run in experiment.manifest["runs"]] == [None] * 5
    for run in experiment.manifest["runs"]:
        assert run["cpu"]["service_ns_per_request"] > 0
    assert not of_containers(os.getpid())


@pytest.mark.exhaustive
def test_environments_are_measured_once_in_an_experiment(
    experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def only_of_host(settings: Any, *rest: Any) -> dict[str, float]:
        if settings.name == "container":
            raise RunError("no such luck")
        return fingerprint(settings, *rest)

    experiment.write_plan(top='environments = ["host", "container"]')
    monkeypatch.setattr("tare.lab.run.experiment.fingerprint", only_of_host)
    assert experiment.measure(blocks=1).returncode == 0
    (first,) = experiment.manifest["fingerprints"].items()
    assert first[0] == "host"
    why = "container: its fingerprint could not be taken: no such luck"
    assert why in experiment.manifest["warnings"]
    monkeypatch.setattr("tare.lab.run.experiment.fingerprint", fingerprint)
    assert experiment.resume("--blocks", "2").returncode == 0
    taken = experiment.manifest["fingerprints"]
    assert taken["host"] == first[1]
    assert taken["container"]["system_call_ns"] > 0


BUSY = '{ type = "wrap", command = ["sh", "-c", "while :; do :; done & exec \\"$@\\"", "sh"] }'


def test_a_service_that_reaches_its_cpu_limit_is_invalid(experiment: Experiment) -> None:
    table = '[[environments]]\ntype = "container"\ncpus = 0.1\n'
    experiment.write_plan(layers=BUSY, top=table)
    done = experiment.measure(blocks=1)
    assert done.returncode == 0, done.stderr
    (run,) = experiment.runs("two")
    assert "throttled" in run["reason"]


def test_memory_beyond_the_limit_ends_the_program(make: Make, tmp_path: Path) -> None:
    fill = "python3 -c 'bytearray(1 << 29)' || echo failed"
    assert run(make(memory="64 MiB"), fill, tmp_path).endswith("failed\n")
