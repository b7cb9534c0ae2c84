# SPDX-License-Identifier: Apache-2.0
"""What the environment `pods-across-nodes` asks a cluster for, and how its answers are read."""

import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_core import PydanticCustomError
from tests.lab.kubernetes_schema import check_pod

from tare.errors import InputError
from tare.lab import environments
from tare.lab.doctor import kubernetes
from tare.lab.environments import pods_across_nodes
from tare.lab.environments.cluster import client, files
from tare.lab.environments.cluster.manifest import RUN, ClusterPod, manifest, proxy
from tare.lab.environments.cluster.reader import Reader
from tare.lab.environments.cluster.status import READ, counters, status, why_not_listening
from tare.lab.environments.launch import RunError
from tare.lab.environments.pods_across_nodes import PodsAcrossNodes
from tare.lab.recommendations.observations import RunObservations
from tare.lab.recommendations.one_node import judge as one_node
from tare.lab.recommendations.one_pod import judge as one_pod
from tare.lab.recommendations.pods import read
from tare.plan import Condition, Plan, parse
from tare.plan.schema.environments import PodsAcrossNodesEnvironment

NAME = "tare-4194304-99-0123abcd"


def plan_of(environment: str, more: str = "") -> Plan:
    return parse(
        f'name = "try"\nbudget = "3%"\nservice = {{ command = "sleep {{port}}" }}\n'
        f"environments = [{environment}]\n"
        f'[[conditions]]\nname = "plain"\n[[conditions]]\nname = "again"\n{more}',
        "try.toml",
        Path("/plans"),
    )


def pods_of(proxies: int = 0, **limits: Any) -> dict[str, Any]:
    nodes: Sequence[str | None] = limits.pop("nodes", (None, None))
    folders = [Path("/results/work"), Path("/plans"), Path("/tmp/tare")]
    containers = ["service", *(proxy(number + 1) for number in range(proxies))]
    name = f"{NAME}-service"
    service = ClusterPod(name, "shop:1", containers, folders, node=nodes[0], **limits)
    load = ClusterPod(f"{NAME}-load", "shop:1", ["load"], folders, node=nodes[1])
    return manifest(NAME, [service, load])


@settings(deadline=None)
@given(
    proxies=st.integers(0, 4),
    cpus=st.none() | st.floats(0.01, 4096),
    memory=st.none() | st.integers(1, 1 << 60),
    nodes=st.sampled_from([(None, None), ("left", "right.example")]),
)
def test_kubernetes_takes_both_pods_of_any_plan(
    proxies: int, cpus: float | None, memory: int | None, nodes: tuple[str | None, str | None]
) -> None:
    written = pods_of(proxies, cpus=cpus, memory=memory, nodes=nodes)
    assert len(written["items"]) == 2
    for pod in written["items"]:
        check_pod(pod)


def test_each_pod_repels_the_other_pod_of_its_run_alone() -> None:
    for pod in pods_of()["items"]:
        assert pod["metadata"]["labels"][RUN] == NAME
        (term,) = pod["spec"]["affinity"]["podAntiAffinity"][
            "requiredDuringSchedulingIgnoredDuringExecution"
        ]
        assert term["topologyKey"] == "kubernetes.io/hostname"
        assert term["labelSelector"] == {"matchLabels": {RUN: NAME}}


@pytest.mark.parametrize("nodes", [(None, None), ("left", "right")])
def test_recommendations_are_judged_by_the_manifest(
    nodes: tuple[str | None, str | None], tmp_path: Path
) -> None:
    import json

    file = tmp_path / "pods.json"
    file.write_text(json.dumps(pods_of(1, nodes=nodes)))
    pods = read(file)
    assert not isinstance(pods, str)
    run = RunObservations(
        plan=plan_of('"host"'), condition=Condition(name="plain"), address="10.1.2.3", pods=pods,
        started_by_plan=False, is_remote=True,
    )  # fmt: skip
    for judge in (one_pod, one_node):
        found = judge(run)
        assert found is not None
        assert found.status == "broken", found


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ("", "image"),
        (', image = ""', "image"),
        (', image = "shop:1", nodes = ["left"]', "nodes"),
        (', image = "shop:1", nodes = ["left", "left"]', "two different nodes"),
        (', image = "shop:1", namespace = "--all"', "namespace"),
        (', image = "shop:1", cpus = 0', "cpus"),
    ],
)
def test_wrong_settings_are_refused_with_their_line(keys: str, message: str) -> None:
    with pytest.raises(InputError, match=rf"^try\.toml:4: .*{message}") as raised:
        plan_of(f'{{ type = "pods-across-nodes"{keys} }}')
    assert "\n" not in str(raised.value)


def fake_kubectl(folder: Path, script: str) -> None:
    """A program in place of kubectl, which no test measures."""
    folder.mkdir(exist_ok=True)
    (folder / "kubectl").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "kubectl").chmod(0o755)


NODES = """\
cat <<'EOF'
{{"items": [{}]}}
EOF
"""
NODE = """\
{{"metadata": {{"name": "{}"}}, "spec": {}, "status": {{"conditions": [{{"type": "Ready",
"status": "{}"}}]}}}}"""
MASTER = '{"taints": [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]}'


@pytest.mark.parametrize(
    ("script", "keys", "missing"),
    [
        ("echo log >&2; echo 'error: context \"x\" does not exist' >&2; exit 1", {},
         'a Kubernetes cluster that kubectl reaches .*context "x" does not exist'),
        (NODES.format(NODE.format("one", "{}", "True")), {}, "two nodes that take pods .found 1"),
        (NODES.format(f'{NODE.format("a", "{}", "True")}, {NODE.format("b", "{}", "False")}'), {},
         "two nodes that take pods .found 1"),
        (NODES.format(f'{NODE.format("a", "{}", "True")}, {NODE.format("b", MASTER, "True")}'), {},
         "two nodes that take pods .found 1"),
        (NODES.format(NODE.format("one", "{}", "True")), {"nodes": ["one", "two"]}, "not two"),
        ("echo no JSON", {}, "cannot be read"),
        ('[ "$2" != can-i ] || exit 1\n[ "$1" != auth ] || exit 1\n'
         + NODES.format(f'{NODE.format("a", "{}", "True")}, {NODE.format("b", "{}", "True")}'), {},
         "the right to create pods in"),
        ('[ "$6" != --subresource=exec ] || exit 1\n'
         '[ "$1" != auth ] || exit 0\n'
         + NODES.format(f'{NODE.format("a", "{}", "True")}, {NODE.format("b", "{}", "True")}'), {},
         "the right to create pods/exec in"),
    ],
)  # fmt: skip
def test_what_is_missing_is_one_line(
    script: str, keys: dict[str, Any], missing: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    fake_kubectl(tmp_path / "bin", script)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    wanted = PodsAcrossNodesEnvironment(type="pods-across-nodes", image="shop:1", **keys)
    with pytest.raises(PydanticCustomError, match=missing) as raised:
        PodsAcrossNodes.check(wanted)
    assert "\n" not in raised.value.message()


def test_without_kubectl_the_environment_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pods_across_nodes, "find", lambda _: None)
    monkeypatch.setattr(kubernetes, "find", lambda _: None)
    plan, skipped = environments.available(
        plan_of('"host", { type = "pods-across-nodes", image = "shop:1" }')
    )
    assert plan.environment_names == ["host"]
    (line,) = skipped
    assert "environment 'pods-across-nodes' is skipped" in line
    assert "kubectl to be installed" in line
    assert kubernetes.kubernetes().state == "no"


def pod(name: str = "one", **found: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "service"}]},
        "status": found,
    }


RUNS = {"name": "service", "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}}}


def waits(reason: str, message: str = "") -> dict[str, Any]:
    return {"name": "service", "state": {"waiting": {"reason": reason, "message": message}}}


def test_pods_are_up_when_all_their_containers_run() -> None:
    up = pod("one", phase="Running", podIP="10.0.0.1", containerStatuses=[RUNS])
    late = pod("two", phase="Pending", containerStatuses=[waits("ContainerCreating")])
    assert status([up]).addresses == {"one": "10.0.0.1"}
    assert not status([up]).waits_for
    found = status([up, late])
    assert found.waits_for == "pod two: its containers are being started"
    assert not found.is_final
    six = pod("six", podIP="fd00::1", podIPs=[{"ip": "fd00::1"}], containerStatuses=[RUNS])
    assert status([six]).is_final
    six["status"]["podIPs"].append({"ip": "10.0.0.2"})
    assert status([six]).addresses == {"six": "10.0.0.2"}


@pytest.mark.parametrize(
    ("found", "text", "is_final", "has_no_node"),
    [
        ({"containerStatuses": [waits("ErrImagePull", "shop:1:\n not found")]},
         "container service: ErrImagePull: shop:1: not found", True, False),
        ({"containerStatuses": [{"name": "service", "state": {"terminated": {"reason": "OOM"}}}]},
         "container service ended: OOM", True, False),
        ({"phase": "Failed", "reason": "Evicted", "message": "The node was low on memory"},
         "Evicted: The node was low on memory", True, False),
        ({"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                          "message": "0/1 nodes are available"}]},
         "no node takes it: Unschedulable: 0/1 nodes are available", False, True),
        ({}, "its containers are being started", False, False),
    ],
)  # fmt: skip
def test_why_a_pod_does_not_start_is_one_line(
    found: dict[str, Any], text: str, is_final: bool, has_no_node: bool
) -> None:
    answer = status([pod(), pod("two", **found)] if is_final else [pod("two", **found)])
    assert answer.waits_for == f"pod two: {text}"
    assert (answer.is_final, answer.has_no_node) == (is_final, has_no_node)


def test_counters_of_both_versions_of_control_groups_are_in_ns() -> None:
    two = "cpu.stat usage_usec 5\ncpu.stat throttled_usec 7\nmemory.events oom_kill 1\n"
    one = "cpuacct/cpuacct.usage 5000 \ncpu/cpu.stat throttled_time 7000\n"
    one += "memory/memory.oom_control oom_kill 1\ncpu/cpu.stat nr_periods 3\n"
    expected = {"cpu_time": 5000, "throttled_time": 7000, "oom_kills": 1}
    assert counters(two) == counters(one) == expected
    assert counters("cpu.stat nr_periods 0\nodd\n") == {}


def test_a_port_is_open_for_other_pods_unless_it_is_on_loopback_alone() -> None:
    everywhere, loopback, six = "00000000:1F90", "0100007F:1F90", f"{'0' * 32}:1F90"
    mapped = "0000000000000000FFFF00000100007F:1F90"
    assert why_not_listening(everywhere, 8080) is None
    assert why_not_listening(f"{loopback}\n{six}\n", 8080) is None
    assert "loopback" in str(why_not_listening(f"{loopback}\n{mapped}\n", 8080))
    assert why_not_listening(everywhere, 8081) == "no program listens on port 8081"


def test_a_listening_program_is_found_by_the_script_that_runs_in_pods() -> None:
    import socket

    from tare.lab.environments.cluster.status import LISTENERS

    with socket.create_server(("127.0.0.1", 0)) as server:
        found = subprocess.check_output(["sh", "-c", LISTENERS], text=True)
        assert "loopback" in str(why_not_listening(found, server.getsockname()[1]))


def test_one_shell_reads_again_and_another_does_after_its_end() -> None:
    reader = Reader([], 'echo "cpu.stat usage_usec $$"')
    first = reader.read()
    assert reader.read() == first
    (number,) = counters(first).values()
    os.kill(number // 1000, signal.SIGKILL)
    assert reader.read() != first
    assert reader.close() == ""
    assert reader.read() != first
    reader.close()


def test_a_shell_that_cannot_start_is_the_reason_in_one_line() -> None:
    with pytest.raises(RunError, match=r"^/nowhere/kubectl: No such file"):
        Reader(["/nowhere/kubectl"], READ).read()
    words = ["sh", "-c", "echo 'error: no such pod' >&2; exit 1"]
    with pytest.raises(RunError, match=r"^control groups of a pod: no such pod$"):
        Reader(words, READ).read()


@pytest.mark.parametrize("pieces", [1, 3, 1000])
def test_the_last_line_of_a_log_is_the_programs(pieces: int) -> None:
    for text, expected in (
        (b"one\ncommand terminated with exit code 7\n", b"one\n"),
        (b"command terminated with exit code 137", b""),
        (b"one\ncommand terminated with exit code 7\ntwo", None),
        (b"no end", None),
        (b"", None),
    ):
        read, write = os.pipe()
        to, target = os.pipe()
        for at in range(0, len(text), pieces):
            os.write(write, text[at : at + pieces])
        os.close(write)
        client.copy_without_mark(read, target)
        os.close(target)
        assert os.read(to, 4096) == (text if expected is None else expected)
        os.close(read)
        os.close(to)


def test_only_new_and_changed_files_are_carried(tmp_path: Path) -> None:
    here, log = tmp_path / "here", tmp_path / "log"
    (here / "inner").mkdir(parents=True)
    (here / "inner/one").write_text("1")
    (here / "two").write_text("2")
    (here / "link").symlink_to("two")
    carried = files.Carried([here])
    list_only = ["sh", "-c", f"tar -tf - >>{log}; echo . >>{log}", "sh"]

    def carry() -> list[str]:
        log.unlink(missing_ok=True)
        carried.carry(list_only, [here])
        return log.read_text().splitlines() if log.exists() else []

    base = str(here)[1:]
    assert carry() == [f"{base}/{name}" for name in ("inner/", "inner/one", "link", "two")] + ["."]
    assert carry() == []
    (here / "inner/new").write_text("3")
    (here / "two").write_text("more")
    assert carry() == [f"{base}/inner/new", f"{base}/two", "."]


def test_a_complaint_of_tar_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("1")
    words = ["sh", "-c", "cat >/dev/null; echo 'tar: no space left' >&2; exit 2", "sh"]
    with pytest.raises(RunError, match=r"^tar in the pod: tar: no space left$"):
        files.Carried([]).carry(words, [tmp_path / "file"])


def test_files_come_back_and_missing_files_are_left_out(tmp_path: Path) -> None:
    root = tmp_path / "pod"
    wanted, never = tmp_path / "run", tmp_path / "never"
    inside = root / str(wanted)[1:]
    inside.mkdir(parents=True)
    (inside / "written").write_text("by the program")
    (inside / "out").symlink_to("/etc/passwd")
    # `cd /` of the script leads to the files of the pod.
    script = f'shift 2; script=$1; shift 2; cd() {{ command cd {root}; }}; eval "$script"'
    files.bring(["sh", "-c", script, "sh"], [wanted, never])
    assert (wanted / "written").read_text() == "by the program"
    assert not (wanted / "out").exists()
    assert not never.exists()


def test_a_file_outside_of_the_folders_is_refused(tmp_path: Path) -> None:
    archive = tmp_path / "odd.tar"
    with tarfile.open(archive, "w:") as file:
        file.add(sys.executable, arcname="../etc/odd", recursive=False)
    with pytest.raises(RunError, match="not below its folder: /etc/odd"):
        files.bring(["sh", "-c", f"cat {archive}"], [tmp_path / "run"])


def test_files_that_words_name_are_found_in_folders_of_the_plan(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").touch()
    words = [f"--ca={tmp_path / 'ca.pem'}", f"{tmp_path}/absent", "/etc/passwd"]
    assert files.named(words, [tmp_path]) == [tmp_path / "ca.pem"]
