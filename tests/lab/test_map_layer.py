# SPDX-License-Identifier: Apache-2.0
"""The tracer of sockets as a layer of a plan: it is switched on and off beside one nginx."""

import json
from pathlib import Path

import pytest
from tests.lab.conftest import Experiment
from tests.rights import may_make_namespaces

from tare.native import native

LAYERS = '{ type = "map", interval = "20ms" }'
POLL = '{ type = "map", method = "poll", interval = "20ms" }'


@pytest.mark.parametrize("layer", [LAYERS, POLL], ids=["bundle", "poll"])
def test_the_tracer_is_weighed_in_turns(experiment: Experiment, layer: str) -> None:
    if not may_make_namespaces() or not Path("/sys/kernel/btf/vmlinux").exists():
        pytest.skip("BPF needs root and a kernel with BTF")
    if not Path(native("bin", "tare-map")).exists():
        pytest.skip("tare-map is not built: clang or libbpf-dev is missing")
    experiment.write_plan(
        top='turn = "50ms"\nsettle = "0s"\n', load='warmup = "20ms"\n', layers=layer
    )
    done = experiment.run("--blocks", "1", "--json", report=True)
    assert done.returncode == 0, done.stderr
    manifest = experiment.manifest
    assert (manifest["design"], manifest["smoke"]) == ("alternating", True)
    assert [run["valid"] for run in manifest["runs"]] == [True] * 3
    for run in manifest["runs"]:
        assert run["requests"] > 0
        # The CPU time of the tracer is its own, beside that of the service.
        assert ("agents_ns_per_second" in run["cpu"]) == (run["condition"] == "two")
    (primary,) = [one for one in json.loads(done.stdout)["comparisons"] if one["metric"] == "p50"]
    assert primary["runs"] == {"baseline": 1, "condition": 1}
    assert (experiment.result / "report.html").exists()
