# SPDX-License-Identifier: Apache-2.0
"""One node of Elasticsearch, with an empty store, on the loopback interface."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tare.errors import TareError
from tare.lab.environments.ports import free_port
from tare.lab.pipeline.components import (
    LOCAL,
    Component,
    Components,
    new_folder,
    readiness,
)
from tare.lab.pipeline.programs import ELASTICSEARCH
from tare.samples.fetch.elasticsearch import SERVER, fetch, post, request
from tare.samples.fetch.http_body import http_body

# A green node has its own state and accepts indices.
_READY = readiness(http="/_cluster/health?wait_for_status=yellow&timeout=0s")


class ElasticsearchNode:
    """A node that is ready."""

    def __init__(self, components: Components, log: Path, memory: int) -> None:
        """Starts it with so many MiB of heap. Raises RunError if it does not become ready."""
        http, transport = free_port(LOCAL), free_port(LOCAL)
        files = {"config/elasticsearch.yml": _settings(http, transport)}
        folder = new_folder(ELASTICSEARCH, files, ("data", "logs"), other_user=True)
        self.url = f"http://{LOCAL}:{http}"
        self.component: Component = components.start(
            ELASTICSEARCH, [components.file(ELASTICSEARCH)], name=ELASTICSEARCH, log=log, port=http,
            ready=_READY, folder=folder, other_user=True,
            variables={
                "ES_PATH_CONF": str(folder / "config"),
                "ES_JAVA_OPTS": f"-Xms{memory}m -Xmx{memory}m",
                "HOME": str(folder),
            },
        )  # fmt: skip

    def count(self, index: str) -> int:
        """The number of documents that a search finds. Raises TareError."""
        path = f"/{quote(index, safe='*,')}"
        post(self.url, f"{path}/_refresh")
        answer = post(self.url, f"{path}/_count")
        return int(answer["count"])

    def save(self, index: str, out: Path) -> None:
        """Writes the documents of an index. Raises TareError, InputError if it has none."""
        fetch(self.url, index, None, out)

    def delete(self, prefix: str) -> None:
        """Deletes the indices and the templates with a prefix."""
        for path in (f"/{prefix}*", f"/_template/{prefix}*"):
            with suppress(TareError):
                http_body(request(self.url, path, method="DELETE"), self.url, SERVER, 1 << 20)


def _settings(http: int, transport: int) -> str:
    """Its settings in YAML, of which JSON is a part."""
    settings: dict[str, Any] = {
        "cluster.name": "tare",
        "node.name": "tare",
        "path.data": "{dir}/data",
        "path.logs": "{dir}/logs",
        "network.host": LOCAL,
        "http.port": http,
        "transport.port": transport,
        "discovery.type": "single-node",
        # Else it refuses to write if the disk of this machine is 95 % full.
        "cluster.routing.allocation.disk.threshold_enabled": False,
    }
    return "".join(f"{key}: {json.dumps(value)}\n" for key, value in settings.items())
