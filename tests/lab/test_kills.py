# SPDX-License-Identifier: Apache-2.0
"""Environments of a `tare run` that is killed: the supervisor or `tare clean` removes them."""

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from tests.in_process import tare
from tests.lab import leftovers
from tests.lab.conftest import Experiment, family, held_in, kill_everything, none_left
from tests.lab.root_files import image_of, make_root_of_services
from tests.lab.test_interruption import kill_all_at_once
from tests.rights import may_run_containers, may_run_guests, may_run_pods, may_use_cluster
from tests.waiting import wait_for

PODMAN = pytest.mark.skipif(
    not may_run_pods(), reason="images and pods need root and the packages podman and runc"
)


@dataclass(frozen=True)
class Kind:
    """A kind of environment, and what the kills of a `tare run` with it have to find and leave."""

    table: str
    """A table of `environments` in TOML; the test replaces IMAGE by the name of its image."""
    prefixes: frozenset[str]
    """What the names of everything that a process made have before its number."""
    left: Callable[[int], list[str]]
    marks: tuple[pytest.MarkDecorator, ...]
    is_of_podman: bool = False


KINDS = {
    "container": Kind(
        '{ type = "container", network = "bridge", files = "layered" }',
        frozenset({"tare-", "tbr"}),
        leftovers.of_containers,
        (
            pytest.mark.skipif(
                not may_run_containers(), reason="containers need root and the package runc"
            ),
        ),
    ),
    "image": Kind(
        '{ type = "container", image = "IMAGE" }',
        frozenset({"tare-"}),
        leftovers.of_images,
        (PODMAN,),
        is_of_podman=True,
    ),
    "pod": Kind(
        '{ type = "pod" }',
        frozenset({"tare-pod-"}),
        leftovers.of_pods,
        (PODMAN, pytest.mark.integration),
        is_of_podman=True,
    ),
    "pods-across-nodes": Kind(
        '{ type = "pods-across-nodes", image = "docker.io/library/nginx:1.27" }',
        frozenset({"tare-"}),
        leftovers.of_cluster,
        (
            pytest.mark.skipif(
                not may_use_cluster(), reason="a cluster behind kubectl needs two nodes"
            ),
            pytest.mark.integration,
        ),
    ),
    "vm": Kind(
        '{ type = "vm", machine = "uml" }',
        frozenset({"tare"}),
        leftovers.of_guests,
        (
            pytest.mark.skipif(
                not may_run_guests(), reason="guests need root and the package user-mode-linux"
            ),
            pytest.mark.integration,
        ),
    ),
}


def of_kinds(*names: str) -> pytest.MarkDecorator:
    """A test for each of these kinds of environments."""
    kinds = [pytest.param(name, id=name, marks=KINDS[name].marks) for name in names]
    return pytest.mark.parametrize("held", kinds, indirect=True)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    root = tmp_path_factory.mktemp("image") / "root"
    make_root_of_services(root)
    with image_of(root, "kills") as name:
        yield name


@dataclass(frozen=True)
class Held:
    """A `tare run` with an environment, while a service waits in it."""

    kind: Kind
    process: "subprocess.Popen[str]"

    def left(self) -> list[str]:
        """What is left of its environment."""
        return self.kind.left(self.process.pid)

    def clean(self) -> None:
        """Removes it, or another `tare run` does so at the same time."""
        assert tare("clean").returncode == 0


@pytest.fixture
def held(request: pytest.FixtureRequest, experiment: Experiment) -> Held:
    kind = KINDS[request.param]
    table = kind.table
    if "IMAGE" in table:
        table = table.replace("IMAGE", request.getfixturevalue("image"))
    return Held(kind, held_in(experiment, f"environments = [{table}]"))


@of_kinds("container", "image", "pod", "pods-across-nodes", "vm")
def test_kill_9_of_tare_removes_its_environments(held: Held) -> None:
    process = held.process
    started = family(process)
    names = leftovers.owned(process)
    assert {name.partition(str(process.pid))[0] for name in names} == held.kind.prefixes
    assert held.left()
    process.kill()
    wait_for(lambda: none_left(started))
    process.communicate()
    if held.kind.is_of_podman and held.left():
        held.clean()  # the supervisor has 4 s, too little for podman on a busy machine
    wait_for(lambda: not held.left())


@of_kinds("container", "pod", "pods-across-nodes")
def test_kill_9_of_tare_and_supervisor_at_once_leaves_no_process(held: Held) -> None:
    started = family(held.process)
    kill_all_at_once(held.process)
    wait_for(lambda: none_left(started))
    held.process.communicate()
    held.clean()
    wait_for(lambda: not held.left())


@of_kinds("container", "image", "pod", "pods-across-nodes", "vm")
def test_clean_removes_environments_after_kill_9_of_everything(held: Held) -> None:
    everything = kill_everything(held.process)
    # Another `tare run` that starts now removes it, too, but for the files that podman keeps.
    assert held.left() or not held.kind.is_of_podman
    held.clean()
    wait_for(lambda: none_left(everything))
    wait_for(lambda: not held.left())
