# SPDX-License-Identifier: Apache-2.0
"""One node of Elasticsearch, with an empty store, on the loopback interface."""

import os
import pwd
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tare.errors import TareError
from tare.lab.environments.ports import free_port
from tare.lab.pipeline.components import (
    LOCAL,
    OTHER_USER,
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
        folder = new_folder("elasticsearch", other_user=True)
        try:
            _configure(folder, http, transport)
        except BaseException:
            shutil.rmtree(folder)
            raise
        self.url = f"http://{LOCAL}:{http}"
        self.component: Component = components.start(
            ELASTICSEARCH, [], name=ELASTICSEARCH, log=log, port=http, ready=_READY, folder=folder,
            variables={
                "ES_PATH_CONF": str(folder / "config"),
                "ES_JAVA_OPTS": f"-Xms{memory}m -Xmx{memory}m",
                "HOME": str(folder),
            },
            other_user=True,
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


def _configure(folder: Path, http: int, transport: int) -> None:
    """Writes its settings, whose values in JSON are YAML, too."""
    import json

    settings: dict[str, Any] = {
        "cluster.name": "tare",
        "node.name": "tare",
        "path.data": str(folder / "data"),
        "path.logs": str(folder / "logs"),
        "network.host": LOCAL,
        "http.port": http,
        "transport.port": transport,
        "discovery.type": "single-node",
        # Else it refuses to write if the disk of this machine is 95 % full.
        "cluster.routing.allocation.disk.threshold_enabled": False,
    }
    config = folder / "config"
    config.mkdir()
    lines = (f"{key}: {json.dumps(value)}\n" for key, value in settings.items())
    (config / "elasticsearch.yml").write_text("".join(lines), encoding="utf-8")
    if os.geteuid() == 0:
        user = pwd.getpwnam(OTHER_USER)
        for path in (config, config / "elasticsearch.yml"):
            os.chown(path, user.pw_uid, user.pw_gid)
