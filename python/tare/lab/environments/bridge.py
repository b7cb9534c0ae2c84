# SPDX-License-Identifier: Apache-2.0
"""A network namespace behind a bridge, as container engines make a namespace."""

from tare.lab.environments.host import ip, output
from tare.lab.environments.netns import Netns
from tare.running.created_resources import Record, record


class Bridge(Netns):
    """Programs of this host in a network of their own, reached through a bridge."""

    _record: Record | None = None
    _bridge = ""

    def _record_of(self, interface: str) -> list[str]:
        self._bridge = interface.replace("tare", "tbr")
        gone = f"[ ! -e /sys/class/net/{self._bridge} ] || ip link del {self._bridge}"
        self._record = record("bridge", self._bridge, [("sh", "-c", gone)])
        return self._record.removal

    def _joined(self, interface: str) -> str:
        ip("link", "add", self._bridge, "type", "bridge")
        ip("link", "set", interface, "master", self._bridge)
        return self._bridge

    def stop(self) -> None:
        super().stop()
        if self._record is not None:
            output(self._record.removal)
            self._record = None
