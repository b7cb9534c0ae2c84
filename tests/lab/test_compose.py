# SPDX-License-Identifier: Apache-2.0
"""Experiments on the services of a Compose file."""

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.lab.conftest import Experiment
from tests.lab.root_files import image_of, make_root_of_services
from tests.rights import may_make_namespaces, may_run_pods

SERVICE = Path(__file__).with_name("chained_service.py")
# The image's entrypoint is Python. Services get no address: they know each other by name.
COMPOSE = """\
services:
  store:
    image: {image}
    command: /opt/service.py 0.0.0.0 8000
    volumes: [./service.py:/opt/service.py:ro]
  users:
    image: ${{IMAGE:-{image}}}
    command: ["-c", "{users}"]
    volumes: [./service.py:/opt/service.py:ro]
    depends_on: {{ store: {{ condition: service_started }} }}
    networks: {{ back: {{ aliases: [people] }} }}
    healthcheck:
      test: ["CMD", "{python}", "-c", "from urllib.request import urlopen as u; u('http://users:9000')"]
    deploy: {{ resources: {{ limits: {{ memory: "{memory}" }} }} }}
  web:
    image: {image}
    command: ["/opt/service.py", "0.0.0.0", "80", "people", "9000"]
    ports: ["8080:80"]
    volumes: [./service.py:/opt/service.py:ro]
    depends_on: [users]
  traffic:
    image: localhost/does-not-exist
    depends_on: [web]
"""
# It needs 256 MiB for a moment.
USERS = (
    "import sys, runpy; b'x' * (1 << 28); sys.argv[1:] = '0.0.0.0 9000 store 8000'.split();"
    " runpy.run_path('/opt/service.py', run_name='__main__')"
)
PLAN = """\
name = "shop"
budget = "3%"
blocks = 1
smoke = true
control = false
{top}

[service]
compose = "compose.yaml"
name = "web"
ready = {{ http = "/" }}

[load]
warmup = "100ms"
duration = "500ms"

[[conditions]]
name = "plain"

[[conditions]]
name = "hooked"
layers = [{{ type = "hook", at = "users" }}]
"""
pytestmark = pytest.mark.skipif(
    not may_run_pods() or not may_make_namespaces(),
    reason="images need root and the packages podman and runc",
)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    root = tmp_path_factory.mktemp("image") / "root"
    make_root_of_services(root)
    changes = [f'ENTRYPOINT ["{sys.executable}"]', "EXPOSE 8000/tcp"]
    with image_of(root, "compose", changes) as name:
        yield name


def written(experiment: Experiment, image: str, top: str = "", memory: str = "1g") -> None:
    folder = experiment.plan.parent
    shutil.copy(SERVICE, folder / "service.py")
    text = COMPOSE.format(image=image, python=sys.executable, memory=memory, users=USERS)
    (folder / "compose.yaml").write_text(text)
    experiment.plan.write_text(PLAN.format(top=top))


@pytest.mark.parametrize("top", ["", 'environments = ["netns"]'], ids=["container", "netns"])
def test_services_of_a_compose_file_find_each_other_by_name(
    experiment: Experiment, image: str, top: str
) -> None:
    written(experiment, image, top)
    done = experiment.measure()
    assert done.returncode == 0, done.stderr
    for run in experiment.manifest["runs"]:
        assert run["valid"], run
        assert run["requests"] > 0
        assert run["errors"] == 0


def test_a_service_that_names_no_port_listens_where_its_image_says(
    experiment: Experiment, image: str
) -> None:
    written(experiment, image)
    file = experiment.plan.parent / "compose.yaml"
    text = file.read_text().replace('    ports: ["8080:80"]\n', "").replace('"80"', '"8000"')
    file.write_text(text)
    done = experiment.measure()
    assert done.returncode == 0, done.stderr
    (endpoint,) = {run["endpoint"].rpartition(":")[2] for run in experiment.manifest["runs"]}
    assert endpoint == "8000/"


def test_a_service_has_the_memory_of_its_compose_file(experiment: Experiment, image: str) -> None:
    written(experiment, image, memory="64m")
    done = experiment.measure()
    assert done.returncode != 0
    for run in experiment.manifest["runs"]:
        assert re.match(r"users: .* before it was ready", run["reason"])


def test_a_service_that_is_never_healthy_is_named(experiment: Experiment, image: str) -> None:
    written(experiment, image)
    file = experiment.plan.parent / "compose.yaml"
    file.write_text(file.read_text().replace("users:9000')", "nobody:9000')"))
    own = '\n[[services]]\nname = "users"\nready = { command = "false", timeout = "1s" }\n'
    experiment.plan.write_text(experiment.plan.read_text() + own)
    done = experiment.measure()
    assert done.returncode != 0
    for run in experiment.manifest["runs"]:
        assert run["reason"].startswith("users: not ready within 1 s: false: ")


def test_a_missing_image_is_named_with_how_to_build_it(experiment: Experiment, image: str) -> None:
    written(experiment, image)
    file = experiment.plan.parent / "compose.yaml"
    file.write_text(file.read_text().replace(f"image: {image}", "image: localhost/shop-web", 1))
    done = experiment.measure()
    assert done.returncode == 2
    assert "sudo podman build --tag localhost/shop-web FOLDER" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("kind", ["vm", "pod"])
def test_an_environment_without_such_containers_is_refused(
    experiment: Experiment, image: str, kind: str
) -> None:
    written(experiment, image, f'environments = ["{kind}"]')
    done = experiment.measure()
    assert done.returncode == 2
    assert kind in done.stderr
