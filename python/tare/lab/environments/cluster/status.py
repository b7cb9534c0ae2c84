# SPDX-License-Identifier: Apache-2.0
"""What a cluster says of pods that it is about to start, and what their control groups count."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from ipaddress import ip_address
from typing import Any

_HOPELESS = (
    "CrashLoopBackOff", "CreateContainerConfigError", "CreateContainerError", "ErrImageNeverPull",
    "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "RunContainerError",
)  # fmt: skip
"""Why a container waits that will not start without a change."""
LONGEST = 300


@dataclass(frozen=True)
class Status:
    """Of several pods."""

    addresses: Mapping[str, str]
    """The IPv4 addresses of those whose containers all run, by the name of the pod."""
    waits_for: str = ""
    """Why one of them does not run yet."""
    is_final: bool = False
    """Whether waiting does not help."""
    has_no_node: bool = False
    """Whether it waits for a node that takes it."""


def status(items: Iterable[Mapping[str, Any]]) -> Status:
    """Of the pods in the items of a list."""
    addresses, waiting = {}, []
    for pod in items:
        name, found = pod["metadata"]["name"], pod.get("status") or {}
        reason = _reason(pod, found)
        if reason is None:
            addresses[name] = next(address for address in _addresses(found) if ":" not in address)
        else:
            waiting.append(replace(reason, waits_for=f"pod {name}: {reason.waits_for}"))
    # The first that is final, else the first.
    first = min(waiting, key=lambda reason: not reason.is_final, default=Status({}))
    return replace(first, addresses=addresses)


def _reason(pod: Mapping[str, Any], found: Mapping[str, Any]) -> Status | None:
    """Why a pod does not run; None if it runs."""
    if found.get("phase") in ("Failed", "Succeeded"):
        return Status({}, _text(found, f"it has {found['phase'].lower()}"), is_final=True)
    containers = found.get("containerStatuses") or ()
    for container in containers:
        state, name = container.get("state") or {}, container["name"]
        if ended := state.get("terminated"):
            text = f"container {name} ended: {_text(ended, 'no reason')}"
            return Status({}, text, is_final=True)
        waiting = state.get("waiting") or {}
        if waiting.get("reason") in _HOPELESS:
            return Status({}, f"container {name}: {_text(waiting, '')}", is_final=True)
    for condition in found.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            text = f"no node takes it: {_text(condition, 'no reason')}"
            return Status({}, text, has_no_node=True)
    running = [each for each in containers if "running" in (each.get("state") or {})]
    if len(running) < len(pod["spec"]["containers"]):
        return Status({}, "its containers are being started")
    addresses = [*_addresses(found)]
    if not addresses:
        return Status({}, "it has no address yet")
    if all(":" in address for address in addresses):
        return Status({}, "it has no IPv4 address", is_final=True)
    return None


def _addresses(found: Mapping[str, Any]) -> Iterator[str]:
    if found.get("podIP"):
        yield found["podIP"]
    yield from (each["ip"] for each in found.get("podIPs") or ())


def _text(found: Mapping[str, Any], otherwise: str) -> str:
    """Reason and message of something, in one line."""
    parts = [str(found[key]) for key in ("reason", "message") if found.get(key)]
    return " ".join(": ".join(parts).split())[:LONGEST] or otherwise


READ = """\
cd /sys/fs/cgroup && for file in cpu.stat memory.events cpuacct/cpuacct.usage cpu/cpu.stat \\
    memory/memory.oom_control
do
    [ ! -r "$file" ] || while read -r name value; do echo "$file $name $value"; done <"$file"
done
"""
"""The script of a shell that prints the counters of its container's control groups."""
_COUNTERS = {
    "cpu.stat usage_usec": ("cpu_time", 1_000),
    "cpu.stat throttled_usec": ("throttled_time", 1_000),
    "cpu/cpu.stat throttled_time": ("throttled_time", 1),
    "memory.events oom_kill": ("oom_kills", 1),
    "memory/memory.oom_control oom_kill": ("oom_kills", 1),
}
"""Names and factors of what is counted, version 2 and version 1."""
_CPU_TIME_V1 = "cpuacct/cpuacct.usage"


def counters(printed: str) -> dict[str, int]:
    """What `READ` printed: `cpu_time` and `throttled_time` in ns, `oom_kills`. What the kernel
    does not count is absent."""
    found = {}
    for line in printed.splitlines():
        name, _, value = line.strip().rpartition(" ")
        if not value.isdecimal():
            continue
        if name == _CPU_TIME_V1:
            found["cpu_time"] = int(value)
        elif name in _COUNTERS:
            counter, factor = _COUNTERS[name]
            found[counter] = int(value) * factor
    return found


LISTENERS = """\
for file in /proc/net/tcp /proc/net/tcp6
do
    [ ! -r "$file" ] || while read -r number place other state rest
    do
        [ "$state" != 0A ] || echo "$place"
    done <"$file"
done
"""
"""The script of a shell that prints where its pod accepts connections (proc(5), /proc/net/tcp)."""


def why_not_listening(printed: str, port: int) -> str | None:
    """Why no other pod can connect to a port, by what `LISTENERS` printed; None if it can."""
    found = [place.rpartition(":") for place in printed.split()]
    places = [address for address, _, number in found if int(number, 16) == port]
    if not places:
        return f"no program listens on port {port}"
    if all(_is_loopback(place) for place in places):
        return f"port {port} is open on the loopback interface only; use {{address}} in the command"
    return None


def _is_loopback(place: str) -> bool:
    """Of an address as the kernel of a little-endian machine prints its 32-bit words."""
    words = [bytes.fromhex(place[at : at + 8])[::-1] for at in range(0, len(place), 8)]
    address = ip_address(b"".join(words))
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
