# SPDX-License-Identifier: Apache-2.0
"""Replicas of a service: each in an environment of its own, behind a balancer of HTTP."""

from collections.abc import Iterator

from tare.lab.layers.proxy import COMMANDS, CONFIGS, MINIMAL
from tare.plan import Plan
from tare.plan.schema.placeholders import fill
from tare.plan.schema.services import NeededService, PlacedService

PROGRAM, CONFIG = "nginx", "balancer.conf"
BALANCER = "~balancer"
"""The role of balancers. No name has a tilde, so that no layer stands there."""
_ONE_SERVER = "server {address}:{upstream};"


def expanded(plan: Plan) -> list[PlacedService]:
    """All services of a plan in the order of their start, replicas one by one before the balancer
    that has their service's name."""
    return [placed for service in plan.all_services for placed in _expanded(service)]


def _expanded(service: PlacedService) -> Iterator[PlacedService]:
    table = service.table
    if not isinstance(table, NeededService) or table.replicas == 1:
        yield service
        return
    names = table.names_of_replicas
    for name in names:
        yield PlacedService(table, name, service.place, service.role)
    yield PlacedService(_balancer(table, names), service.name, service.place, BALANCER)


def _balancer(table: NeededService, names: list[str]) -> NeededService:
    """A proxy that sends each request to the next replica. It starts when all are ready."""
    servers = " ".join(f"server {{{name}.address}}:{{{name}.port}};" for name in names)
    config = (MINIMAL / CONFIGS[PROGRAM]).read_text(encoding="utf-8")
    assert _ONE_SERVER in config
    config = fill(config.replace(_ONE_SERVER, servers), {"name": "balancer"})
    return table.model_copy(
        update={
            "command": [fill(word, {"config": CONFIG}) for word in COMMANDS[PROGRAM]],
            "directory": "{dir}",
            "environment": {},
            "files": {CONFIG: config},
            "ready": table.ready.of_proxies,
            "beside": None,
            "container": None,
            "after": [],
            "volume": None,
        }
    )
