# SPDX-License-Identifier: Apache-2.0
"""Pods of `tare run`: their own loopback, limits and images."""

import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pydantic_core import PydanticCustomError
from tests.lab.conftest import NGINX_CONF, Experiment
from tests.lab.kubernetes_schema import check_pod
from tests.lab.leftovers import of_pods
from tests.lab.made import making
from tests.lab.root_files import PODMAN, image_of, make_root
from tests.lab.test_container import BUSY
from tests.lab.test_environments import wait_until_ended
from tests.rights import may_run_pods

from tare.errors import InputError
from tare.lab import environments
from tare.lab.environments import pod as pods
from tare.lab.environments.environment import Program
from tare.lab.environments.launch import Proxy, RunError
from tare.lab.environments.pod import Pod
from tare.lab.processes.processes import Processes
from tare.plan import parse
from tare.plan.schema.environments import PodEnvironment
from tare.running.directory import runtime_directory

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(
        not may_run_pods(), reason="pods need root and the packages podman and runc"
    ),
]
Make = Callable[..., Pod]


@pytest.fixture
def make(processes: Processes) -> Iterator[Make]:
    """Makes a pod environment with some settings."""
    with making(Pod, "pod", processes) as make:
        yield make


def run(pod: Pod, script: str, folder: Path, **variables: str) -> str:
    """What a shell in the service's container prints until it ends."""
    folder.mkdir(exist_ok=True)
    log = folder / "log"
    pod.copy_in([folder])
    files = pod.image_of(None)
    directory = (files and files.directory) or folder
    program = Program("service", ["sh", "-c", script], directory, log, [0], variables)
    wait_until_ended(pod.processes, pod.start(program))
    return log.read_text()


def test_the_loopback_of_a_pod_is_its_own(make: Make) -> None:
    connect = "import socket; socket.create_connection(('127.0.0.1', {}), 5)"
    pod = make()
    with socket.create_server(("127.0.0.1", 0)) as here:
        port = here.getsockname()[1]
        with pytest.raises(RunError, match="Connection refused"):
            pod.exec(["python3", "-c", connect.format(port)])
        assert pod.exec(["python3", "-c", "print(*__import__('os').listdir('/sys/class/net'))"])

        def listens() -> bool:
            with socket.socket() as client:
                return client.connect_ex(("127.0.0.1", port)) == 0

        assert listens()
        assert not pod.in_network(listens)


def test_service_and_load_have_containers_of_their_own_in_one_network(
    make: Make, tmp_path: Path
) -> None:
    pod = make()
    links = "readlink /proc/self/ns/net /proc/self/ns/mnt; cat /proc/self/cgroup"
    seen = run(pod, links, tmp_path / "run").splitlines()
    log = tmp_path / "run" / "log-of-load"
    load = Program("load", ["sh", "-c", links], tmp_path / "run", log, [0])
    wait_until_ended(pod.processes, pod.start(load))
    net, mount, *groups = log.read_text().splitlines()
    assert net == seen[0] != str(Path("/proc/self/ns/net").readlink())
    assert mount != seen[1]
    assert groups != seen[2:]


def test_kubernetes_takes_the_manifest_of_a_pod(make: Make, image: str, tmp_path: Path) -> None:
    pod = make(image=image, cpus=0.5, memory="512 MiB", load_cpus=1.0)
    folder = tmp_path / "run"
    folder.mkdir()
    pod.copy_in([folder])
    proxies = [Proxy("proxy1-nginx", ["true"], 1), Proxy("Proxy 2", ["true"], 2)]
    service = Program("service", ["true"], folder, folder / "log", [0], proxies=proxies)
    wait_until_ended(pod.processes, pod.start(service))
    written = json.loads(pod.manifest().read_text())
    assert len(written["spec"]["containers"]) == 4
    check_pod(written)


@pytest.mark.parametrize("name", ["a b", "a,b=c", 'it\'s "quoted"', "\N{SNOWMAN}", "$HOME;x"])
def test_folders_may_have_any_name(make: Make, tmp_path: Path, name: str) -> None:
    assert run(make(), "echo yes >written; pwd", tmp_path / name) == f"{tmp_path / name}\n"
    assert (tmp_path / name / "written").read_text() == "yes\n"


def test_a_folder_with_a_colon_is_refused_with_its_path(make: Make, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"a pod cannot show .*a:b: Kubernetes allows no colon"):
        run(make(), "pwd", tmp_path / "a:b")


def test_what_is_written_to_var_stays_in_the_pod(make: Make, tmp_path: Path) -> None:
    script = "touch /usr/tare-try; echo new >/var/tare-try && cat /var/tare-try"
    printed = run(make(), script, tmp_path / "run")
    assert "Read-only file system" in printed
    assert printed.endswith("new\n")
    assert not Path("/var/tare-try").exists()


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An image with a shell, its libraries, a variable and a user."""
    root = tmp_path_factory.mktemp("image") / "root"
    make_root(root)
    (root / "opt/only").mkdir(parents=True)
    with image_of(root, "pod", ["ENV ONLY=there", "USER 1234:1234", "WORKDIR /opt/only"]) as name:
        yield name


def test_a_service_has_files_variables_user_and_folder_of_its_image(
    make: Make, image: str, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    pod = make(image=image)
    script = f"cat /etc/only; echo $ONLY $MORE; pwd; id -u; : >{folder}/written"
    printed = run(pod, script, folder, MORE="more")
    assert printed == "in the image\nthere more\n/opt/only\n1234\n"
    assert (folder / "written").stat().st_uid == 1234
    assert "/etc/only" not in pod.exec(["sh", "-c", "echo /*"])


def test_an_image_without_a_shell_is_the_reason_in_one_line(make: Make, tmp_path: Path) -> None:
    root = tmp_path / "root"
    make_root(root)
    (root / str(shutil.which("sh"))[1:]).unlink()
    with image_of(root, "no-shell-in-pod") as name:
        pod = make(image=name)
        with pytest.raises(RunError, match=f"^image {name} has no sh, which starts each program"):
            run(pod, "true", tmp_path / "run")
        pod.stop()


def test_a_program_of_the_image_need_not_be_on_this_machine(
    experiment: Experiment, image: str
) -> None:
    table = f'[[environments]]\ntype = "pod"\nimage = "{image}"\n'
    experiment.write_plan(top=table)
    experiment.folder.chmod(0o755)  # for the user of the image
    plan = experiment.plan.read_text().replace('"nginx -p {dir}', '"only-there {dir}')
    experiment.plan.write_text(plan)
    done = experiment.measure(blocks=1)
    assert "only-there: not found" in done.stderr, done.stderr


def test_an_image_that_does_not_exist_is_refused_in_the_plan() -> None:
    text = """\
name = "try"
budget = "3%"
service = { command = "sleep {port}" }
environments = [{ type = "pod", image = "--help" }]
[[conditions]]
name = "plain"
[[conditions]]
name = "again"
"""
    plan = parse(text, "try.toml", Path("/plans"))
    with pytest.raises(InputError, match=r"^try\.toml:4: .*image.*podman's storage") as raised:
        environments.check(plan)
    assert "\n" not in str(raised.value)


def test_what_is_missing_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = PodEnvironment(type="pod")
    monkeypatch.setattr(pods, "find", lambda _: None)
    with pytest.raises(PydanticCustomError, match="podman to be installed"):
        Pod.check(settings)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(PydanticCustomError, match="root rights for a pod"):
        Pod.check(settings)


def test_what_podman_complains_of_is_one_line(make: Make, tmp_path: Path) -> None:
    pod = make()
    pod.copy_in([tmp_path / "nowhere" / "file"], read_only=[tmp_path / "nowhere" / "file"])
    with pytest.raises(RunError, match=r"podman could not make the pod: .*nowhere") as raised:
        pod.exec(["true"])
    assert "\n" not in str(raised.value)
    pod.stop()
    assert not of_pods(os.getpid())


def test_hook_proxy_and_link_work_in_pods(experiment: Experiment) -> None:
    experiment.write_plan_of_layers('["pod"]')
    done = experiment.measure(blocks=1)
    assert done.returncode == 0, done.stderr
    assert [run["reason"] for run in experiment.manifest["runs"]] == [None] * 5
    for run in experiment.manifest["runs"]:
        assert run["cpu"]["service_ns_per_request"] > 0
        assert run["cpu"]["generator_ns_per_request"] > 0
        assert run["endpoint"].startswith("http://127.0.0.1:")
    assert not of_pods(os.getpid())


def test_a_service_that_reaches_its_cpu_limit_is_invalid(experiment: Experiment) -> None:
    experiment.write_plan(layers=BUSY, top='[[environments]]\ntype = "pod"\ncpus = 0.05\n')
    done = experiment.measure(blocks=1)
    assert "the service was throttled" in done.stderr


def test_a_generator_that_reaches_its_cpu_limit_is_invalid(experiment: Experiment) -> None:
    experiment.write_plan(top='[[environments]]\ntype = "pod"\nload_cpus = 0.02\n')
    done = experiment.measure(blocks=1)
    assert "the load generator was throttled" in done.stderr


def test_kill_9_of_the_service_is_the_reason_of_its_run(experiment: Experiment) -> None:
    loaded = 'until [ "$(wc -l <access.log)" -gt 20 ]; do sleep 0.02; done'
    command = ["sh", "-c", f'({loaded}; kill -9 $$) & exec "$@"', "sh"]
    experiment.write_plan(
        top='environments = ["pod"]',
        load='warmup = "50ms"\nduration = "2s"',
        layers=f'{{ type = "wrap", command = {json.dumps(command)} }}',
        nginx=NGINX_CONF.replace("access_log off;", "access_log access.log;"),
    )
    done = experiment.measure(blocks=1)
    assert done.returncode == 0, done.stderr
    (run,) = experiment.runs("two")
    assert "exited with code 137 during the load" in run["reason"]
    assert not of_pods(os.getpid())


def test_a_pod_is_removed_although_podman_lost_its_monitors(make: Make) -> None:
    pod = make()
    pod.exec(["true"])
    folder = runtime_directory() / "containers" / pod.pod
    ids = (folder / "ids").read_text().split()[1:]
    states = [Path("/run/runc", container) for container in ids]
    assert len(states) == 3
    assert all(state.exists() for state in states)
    format_ = "{{.State.ConmonPid}} {{.State.Pid}}"
    pids = subprocess.check_output([*PODMAN, "inspect", "--format", format_, *ids], text=True)
    for pid in pids.split():
        os.kill(int(pid), signal.SIGKILL)
    (folder / "ids").unlink()  # as if it was killed before it knew them
    pod.stop()
    assert not [state for state in states if state.exists()]
    assert not of_pods(os.getpid())


def test_two_experiments_have_pods_of_their_own(make: Make) -> None:
    first, second = make(), make()
    networks = {each.exec(["readlink", "/proc/self/ns/net"]) for each in (first, second)}
    assert len(networks) == 2
    first.stop()
    assert second.exec(["echo", "still there"]) == "still there\n"
