# SPDX-License-Identifier: Apache-2.0
"""Kubernetes' own schema of manifests, without a cluster."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""A name by RFC 1123, which a cluster asks for and the schema does not."""


def check_pod(manifest: Mapping[str, Any]) -> None:
    """Fails if the oldest or newest known Kubernetes has a schema that refuses the manifest of a
    pod, unknown keys included, or if a cluster would refuse its names."""
    schema = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is missing")
    versions = schema.utils.all_versions()
    assert versions[0] != versions[-1]
    for version in (versions[0], versions[-1]):
        schema.validate(dict(manifest), version, strict=True)
    names = [*_names(manifest)]
    assert [name for name in names if not LABEL.fullmatch(name)] == []
    for key in ("containers", "volumes"):
        own = [each["name"] for each in manifest["spec"][key]]
        assert len({*own}) == len(own)
    volumes = {each["name"] for each in manifest["spec"]["volumes"]}
    for container in manifest["spec"]["containers"]:
        mounts = container["volumeMounts"]
        assert {each["name"] for each in mounts} <= volumes
        assert len({each["mountPath"] for each in mounts}) == len(mounts)


def _names(manifest: Mapping[str, Any]) -> Iterator[str]:
    yield manifest["metadata"]["name"]
    for key in ("containers", "volumes"):
        yield from (each["name"] for each in manifest["spec"][key])
