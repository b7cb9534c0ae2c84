# SPDX-License-Identifier: Apache-2.0
"""Containers of `tare run` from an image: whose files, variables and user, and what it lacks."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pydantic_core import PydanticCustomError
from tests.lab.conftest import Experiment
from tests.lab.leftovers import of_images
from tests.lab.made import making
from tests.lab.root_files import PODMAN, image_of, make_root, make_root_of_services
from tests.lab.test_environments import wait_until_ended
from tests.rights import may_run_pods

from tare.errors import InputError
from tare.lab import environments
from tare.lab.environments import image as images
from tare.lab.environments.container import Container
from tare.lab.environments.environment import Program
from tare.lab.environments.fingerprint import fingerprint
from tare.lab.environments.image import inside, user
from tare.lab.environments.launch import RunError
from tare.lab.processes.processes import Processes
from tare.plan import parse
from tare.plan.schema.environments import ContainerEnvironment

pytestmark = pytest.mark.skipif(
    not may_run_pods(), reason="images need root and the packages podman and runc"
)
Make = Callable[[str], Container]
ROOT_AND_IMAGE = '{ type = "container", root = "/", image = "shop" }'


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("image") / "root"
    make_root_of_services(root)
    return root


@pytest.fixture(scope="module")
def image(root: Path) -> Iterator[str]:
    with image_of(root, "services") as name:
        yield name


@pytest.fixture
def make(processes: Processes) -> Iterator[Make]:
    """Makes a container of an image."""
    with making(Container, "container", processes) as prepared:
        yield lambda image: prepared(image=image)


def run(container: Container, script: str, folder: Path, **variables: str) -> str:
    """What a shell prints, in the folder where the container starts services."""
    folder.mkdir()
    log = folder.parent / "log"
    container.copy_in([folder])
    words = ["sh", "-c", script]
    files = container.image_of(None)
    assert files is not None
    directory = files.directory or folder
    process = container.start(Program("service", words, directory, log, [0], variables))
    wait_until_ended(container.processes, process)
    return log.read_text()


def mounted_at(pid: int) -> list[str]:
    """Where podman mounted the containers of a process."""
    names = [name for name in of_images(pid) if "/" not in name]
    words = ["container", "inspect", "--format", "{{.GraphDriver.Data.MergedDir}}", *names]
    return subprocess.check_output([*PODMAN, *words], text=True).split()


def test_a_service_has_files_variables_user_and_folder_of_its_image(
    root: Path, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OF_HOST", "yes")
    written = tmp_path / "run" / "written"
    changes = ["ENV ONLY=there", "ENV MORE=image", "USER shop", "WORKDIR /opt/shop", "CMD /nowhere"]
    script = f"cat /etc/only; echo $ONLY $MORE ${{OF_HOST-none}}; pwd; id -u; : >{written}"
    with image_of(root, "all", changes) as name:
        printed = run(make(name), script, tmp_path / "run", MORE="plan")
        assert printed == "in the image\nthere plan none\n/opt/shop\n1234\n"
    assert written.stat().st_uid == 1234


def test_a_service_starts_in_the_folder_of_the_plan_unless_the_image_has_one(
    image: str, make: Make, tmp_path: Path
) -> None:
    assert run(make(image), "pwd", tmp_path / "run") == f"{tmp_path}/run\n"


def test_what_programs_write_is_discarded_and_the_image_stays(
    image: str, make: Make, tmp_path: Path
) -> None:
    script = "echo new >/etc/only; : >/added; cat /etc/only"
    first = make(image)
    assert run(first, script, tmp_path / "first") == "new\n"
    (folder,) = mounted_at(os.getpid())
    assert f" {folder} " in Path("/proc/self/mounts").read_text()
    first.stop()
    assert f" {folder} " not in Path("/proc/self/mounts").read_text()
    assert not of_images(os.getpid())
    (tmp_path / "log").unlink()
    script = "cat /etc/only; [ ! -e /added ] && cat /etc/hosts"
    printed = run(make(image), script, tmp_path / "second")
    assert printed == "in the image\n" + Path("/etc/hosts").read_text()


@pytest.mark.parametrize(
    "spec",
    ["", "shop", "1234", "7", "shop:staff", "shop:50", "7:staff", "nobody", "0:1235", "other"],
)
def test_the_user_is_who_podman_says(root: Path, image: str, spec: str, tmp_path: Path) -> None:
    conf = tmp_path / "containers.conf"
    conf.write_text("[containers]\ndefault_ulimits = []\npids_limit = 0\n")
    limits = ["--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"]
    as_user = ["--user", spec] if spec else []
    alone = ["--network", "none", "--cgroups", "no-conmon"]
    words = ["run", "--rm", *alone, *limits, *as_user, image, "sh", "-c", "id"]
    done = subprocess.run(
        [*PODMAN, *words], capture_output=True, text=True, check=False,
        env={**os.environ, "CONTAINERS_CONF": str(conf)},
    )  # fmt: skip
    if done.returncode:
        assert "no matching entries in passwd file" in done.stderr
        with pytest.raises(RunError, match=f"the image has no user '{spec}' in /etc/passwd"):
            user(root, spec)
        return
    found = user(root, spec)
    numbers = {word.partition("=")[0]: word.partition("=")[2] for word in done.stdout.split()}
    groups = {found["gid"], *found.get("additionalGids", [])}
    assert f"{found['uid']}(" in numbers["uid"] + "("
    assert numbers["gid"].partition("(")[0] == str(found["gid"])
    assert {int(each.partition("(")[0]) for each in numbers["groups"].split(",")} == groups


def test_links_of_an_image_do_not_lead_to_files_of_this_machine(tmp_path: Path) -> None:
    root = tmp_path / "root"
    make_root(root)
    (root / "etc/passwd").symlink_to("/data/../../../data/users")
    (root / "data").symlink_to("../../opt")
    (root / "opt").mkdir()
    (root / "opt/users").write_text("shop:x:77:78::/:\n")
    (root / "etc/group").symlink_to("group")  # a circle
    assert inside(root, "/etc/passwd") == root / "opt/users"
    assert user(root, "shop") == {"uid": 77, "gid": 78, "additionalGids": []}


def test_layers_and_proxies_work_around_a_service_of_an_image(
    experiment: Experiment, image: str
) -> None:
    experiment.write_plan_of_layers(f'[{{ type = "container", image = "{image}" }}]')
    done = experiment.measure(blocks=1)
    assert done.returncode == 0, done.stderr
    assert [run["reason"] for run in experiment.manifest["runs"]] == [None] * 5
    for run in experiment.manifest["runs"]:
        assert run["cpu"]["service_ns_per_request"] > 0
    assert experiment.manifest["fingerprints"]["container"]["system_call_ns"] > 0
    assert not of_images(os.getpid())


@pytest.mark.parametrize("kind", ["container", pytest.param("pod", marks=pytest.mark.integration)])
@pytest.mark.parametrize("name", ["--help", "localhost/nowhere:1", "a b"])
def test_an_image_that_does_not_exist_is_refused_in_the_plan(kind: str, name: str) -> None:
    plan = parse(text_of(f'{{ type = "{kind}", image = "{name}" }}'), "try.toml", Path("/plans"))
    with pytest.raises(InputError, match=r"^try\.toml:4: .*image.*podman's storage") as raised:
        environments.check(plan)
    how = "build" if name.startswith("localhost/") else "pull"
    assert f"sudo podman {how}" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_root_and_image_are_refused_together() -> None:
    with pytest.raises(InputError, match=r"^try\.toml:4: .*root or image, not both"):
        parse(text_of(ROOT_AND_IMAGE), "try.toml", Path("/plans"))


def test_podman_is_needed_only_for_an_image(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "find", lambda _: None)
    Container.check(ContainerEnvironment(type="container"))
    with pytest.raises(PydanticCustomError, match="podman to be installed"):
        Container.check(ContainerEnvironment(type="container", image="shop"))


def text_of(environment: str) -> str:
    return f"""\
name = "try"
budget = "3%"
service = {{ command = "sleep {{port}}" }}
environments = [{environment}]
[[conditions]]
name = "plain"
[[conditions]]
name = "again"
"""


def test_an_image_without_a_shell_is_the_reason_in_one_line(make: Make, tmp_path: Path) -> None:
    root = tmp_path / "root"
    make_root(root)
    (root / str(shutil.which("sh"))[1:]).unlink()
    with image_of(root, "shell") as name, pytest.raises(RunError) as raised:
        run(make(name), "true", tmp_path / "run")
    assert f"image {name} has no sh, which starts each program; use" in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.fixture(scope="module")
def without_glibc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An image with one static program."""
    busybox = shutil.which("busybox")
    if busybox is None:
        pytest.skip("busybox-static is not installed")
    if not subprocess.run(["ldd", busybox], capture_output=True, check=False).returncode:
        pytest.skip("busybox is not static: busybox-static is not installed")
    root = tmp_path_factory.mktemp("image") / "root"
    (root / "bin").mkdir(parents=True)
    shutil.copy(busybox, root / "bin")
    (root / "bin/sh").symlink_to("/bin/busybox")
    with image_of(root, "static") as name:
        yield name


def test_an_image_without_glibc_runs_the_service_but_no_hook(
    experiment: Experiment, without_glibc: str
) -> None:
    table = f'environments = [{{ type = "container", image = "{without_glibc}" }}]'
    experiment.write_plan(top=table, layers='{ type = "hook" }', nginx="hello {port}")
    served = '"/bin/busybox httpd -f -h {dir} -p {address}:{port}"'
    plan = experiment.plan.read_text()
    plan = plan.replace('"nginx -p {dir} -c nginx.conf -e stderr"', served)
    experiment.plan.write_text(plan.replace('"nginx.conf" =', '"index.html" ='))
    done = experiment.measure(blocks=1)
    assert done.returncode == 0, done.stderr
    assert [run["reason"] for run in experiment.runs("one")] == [None]
    (run,) = experiment.runs("two")
    assert "has no glibc" in run["reason"]
    assert "which tare-hook needs: the layers hook, link, log" in run["reason"]
    (warning,) = [each for each in experiment.manifest["warnings"] if "fingerprint" in each]
    assert "has no glibc" in warning
    assert not of_images(os.getpid())


def test_a_fingerprint_without_glibc_has_a_reason(
    without_glibc: str, processes: Processes, tmp_path: Path
) -> None:
    settings = ContainerEnvironment(type="container", image=without_glibc)
    with pytest.raises(RunError, match=r"has no glibc .*, which tare-load needs"):
        fingerprint(settings, processes, tmp_path)
