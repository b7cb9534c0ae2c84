# SPDX-License-Identifier: Apache-2.0
"""What the author of a plan states for the ten recommendations; see docs/recommendations.md."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from tare.plan.schema.values import SystemText, expected

Level = Literal["application", "runtime", "library", "kernel", "client"]
"""Where a hook or a monitor is, from the inside of the service to its user."""
Use = Literal["sockets", "files"]
"""What a call is made for: a socket, or any other descriptor."""
Statement = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=900)]


class Recommendations(BaseModel):
    """What no reading of the machine shows."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    manifests: list[SystemText] = Field([], max_length=100)
    """Kubernetes manifests that the commands of the plan apply, relative to the plan."""
    service: SystemText | None = None
    """The name of the container with the service in the manifests."""
    generator: SystemText | None = None
    """The name of the container with the load generator in the manifests."""
    mesh: Statement | None = None
    """Why there is a service mesh, or why there is none."""
    hook_level: Level | None = None
    """Where the layers are; derived from their types unless given."""
    monitor_level: Level | None = None
    """Where times are taken; derived from the layers unless given."""
    typical_use: Statement | None = None
    """What the service, or the hooked function, is typically used for."""
    uses: list[Use] = Field(["sockets"], min_length=1)
    """What the hooked functions are typically called for; each must be in the load."""

    @model_validator(mode="after")
    def _both_names(self) -> Self:
        if (self.service is None) != (self.generator is None):
            raise expected("service and generator together", "service")
        if self.service is not None and not self.manifests:
            raise expected("manifests that have the containers", "service")
        return self
