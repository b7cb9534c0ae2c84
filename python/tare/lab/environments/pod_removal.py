# SPDX-License-Identifier: Apache-2.0
"""The commands that remove a pod, whatever is left of it."""

from collections.abc import Sequence
from pathlib import Path

from tare.lab.environments.overlay_mount import unmount_overlay
from tare.lab.processes.processes import find

IDS = "ids"
"""The file with the ID of a pod, then those of its containers."""
RUNC = Path("/run/runc")
"""Where podman lets runc keep its state."""

# What conmon does after the end of a container must be over: `podman pod rm` waits for it longer.
_KILL = """\
ids=$(sed 1d "$0/ids" 2>/dev/null)
for id in $ids; do "$RUNC" --root /run/runc kill "$id" KILL 2>/dev/null; done
for try in 1 2 3 4 5 6 7 8 9 10; do
    for id in $ids; do
        if [ -e "/run/runc/$id" ]; then sleep 0.1; break; fi
    done
done
exit 0"""
# The first `pod rm` fails if conmon was killed.
_REMOVE = r"""\
folder=$0; pod=$1; shift
[ -s "$folder/ids" ] || "$@" pod inspect --format \
    '{{.Id}}{{range .Containers}} {{.Id}}{{end}}' "$pod" 2>/dev/null | tr ' ' '\n' >"$folder/ids"
set -- "$@" pod rm --force --time 0 --ignore "$pod"
"$@" 2>/dev/null || "$@" || exit
for id in $(sed 1d "$folder/ids" 2>/dev/null); do
    [ ! -e "/run/runc/$id" ] || "$RUNC" --root /run/runc delete --force "$id"
done"""
_REMOVE_IMAGE = '"$@" image rm --force "$0" 2>/dev/null || ! "$@" image exists "$0"'
# podman leaves groups in hierarchies of version 1 without a controller.
_REMOVE_CGROUPS = """\
id=$(sed -n 1p "$0/ids" 2>/dev/null)
[ -n "$id" ] || exit 0
set -- find /sys/fs/cgroup -depth -type d -path "*/libpod_parent/$id*"
tries=100
while [ $((tries -= 1)) -gt 0 ]; do
    "$@" -exec rmdir {} + 2>/dev/null
    [ -n "$("$@" 2>/dev/null)" ] || exit 0
    sleep 0.1
done
echo "control groups of pod $id are busy" >&2
exit 1"""


def undo(podman: Sequence[str], pod: str, image: str, layer: Path) -> list[tuple[str, ...]]:
    """Removes a pod, its image, its control groups, and its folder with a layer and its IDs."""
    folder = layer.parent
    shell = ("env", f"RUNC={find('runc') or 'runc'}", "sh", "-c")
    return [
        (*shell, _KILL, str(folder)),
        (*shell, _REMOVE, str(folder), pod, *podman),
        ("sh", "-c", _REMOVE_IMAGE, image, *podman),
        ("sh", "-c", _REMOVE_CGROUPS, str(folder)),
        unmount_overlay(layer),
        ("rm", "-rf", "--one-file-system", str(folder)),
    ]
