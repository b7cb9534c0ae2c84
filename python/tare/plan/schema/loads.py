# SPDX-License-Identifier: Apache-2.0
"""The load of a plan: Tare's own, over HTTP or plain TCP, or a foreign generator's."""

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from tare.plan.schema.values import (
    Duration,
    EscapedText,
    Fraction,
    LoadCommand,
    Positive,
    Rate,
    RelativePath,
    ShareOfCapacity,
    SomeDuration,
    SystemText,
    UrlPath,
    expected,
)

DEFAULT_TYPE = "http"
"""The type of a load that names none."""
MOST_UNDER_WAY = 2**20
"""Of tare-load: requests that are under way to a target."""


class LoadBase(BaseModel):
    """One kind of load."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class OwnLoad(LoadBase):
    """What Tare's own load generator is told whatever the protocol."""

    mode: Literal["closed", "constant", "open"] = "closed"
    users: Positive | None = None
    """Users of a closed loop or a constant rate, 1 unless said; in an open loop the most
    connections, 256 unless said."""
    threads: Positive | None = None
    rate: Rate = None
    connection: Literal["keep-alive", "per-request"] = "keep-alive"
    timeout: SomeDuration = 5 * 10**9
    duration: SomeDuration = 5 * 10**9
    """Measured window of one run."""
    warmup: Duration = 10**9
    """Load on one run before its window; it is not recorded."""
    slice: SomeDuration = 5 * 10**6
    max_errors: Fraction = 0.01

    @model_validator(mode="after")
    def _rate_fits_mode(self) -> Self:
        if self.mode == "closed" and self.rate is not None:
            raise expected('no rate with mode = "closed": users send back to back', "rate")
        if self.mode != "closed" and self.rate is None:
            raise expected(f'a rate with mode = "{self.mode}"')
        if self.threads is not None and self.threads > self.most_users:
            raise expected(f"at most {self.most_users}, the number of users", "threads")
        return self

    @property
    def most_users(self) -> int:
        """Users, or connections, that there can be at the same time."""
        return self.users or (256 if self.mode == "open" else 1)

    @property
    def needs_capacity(self) -> bool:
        """Whether the rate is a share of a capacity that must be measured first."""
        return isinstance(self.rate, ShareOfCapacity)

    @property
    def most_under_way(self) -> int:
        """Requests that there can be at the same time."""
        return self.most_users

    @property
    def files(self) -> dict[str, str]:
        """Files that it names, relative to the plan, by their keys."""
        return {}


class TareLoad(OwnLoad):
    """Tare's own load generator, over HTTP."""

    type: Literal["http"] = "http"
    path: UrlPath = "/"
    http: Literal["1.1", "2"] = "1.1"
    connections: Positive | None = None
    """Of HTTP/2, shared by the users; one for each thread unless said."""
    https: bool = False
    ca: SystemText | None = None
    """The authorities to trust instead of the system's, relative to the plan."""
    insecure: bool = False
    """Whether any certificate is taken."""
    method: str = Field("GET", pattern="^[A-Z]+$")
    headers: dict[SystemText, SystemText] = {}
    body: str | None = None
    expect_status: list[int] = []
    expect_body: str | None = None

    @model_validator(mode="after")
    def _protocol_fits(self) -> Self:
        if self.connections is not None and self.http != "2":
            raise expected(
                'http = "2": with HTTP/1.1 each user has its own connection', "connections"
            )
        if self.http == "2" and self.connection == "per-request":
            raise expected('http = "1.1" with connection = "per-request"', "http")
        for key in ("ca", "insecure"):
            if getattr(self, key) and not self.https:
                raise expected(f"https = true with {key}", key)
        return self

    @property
    def files(self) -> dict[str, str]:
        return {} if self.ca is None else {"ca": self.ca}


class TcpLoad(OwnLoad):
    """Tare's own load generator, over TCP: bytes out, and bytes back up to an end."""

    type: Literal["tcp"]
    send: EscapedText | None = None
    """The bytes of a request, with the escapes of `tare load tcp --send`."""
    send_file: SystemText | None = None
    """A file with them, relative to the plan."""
    reply: Literal["resp"] | None = None
    reply_until: EscapedText | None = None
    reply_bytes: int | None = Field(None, ge=1, lt=2**63)
    reply_limit: int | None = Field(None, ge=1, lt=2**63)
    """The most bytes of a reply whose end has to be found."""
    pipeline: int = Field(1, ge=1, le=1024)
    """Requests that each user has under way on its connection."""

    @model_validator(mode="after")
    def _request_and_reply(self) -> Self:
        if (self.send is None) == (self.send_file is None):
            raise expected("exactly one of send and send_file")
        ends = (self.reply, self.reply_until, self.reply_bytes)
        if sum(end is not None for end in ends) != 1:
            raise expected("exactly one of reply, reply_until and reply_bytes")
        if self.reply_limit is not None and self.reply_bytes is not None:
            raise expected("no reply_limit with reply_bytes", "reply_limit")
        if self.pipeline > 1 and self.connection == "per-request":
            raise expected('connection = "keep-alive" with a pipeline', "connection")
        if self.most_under_way > MOST_UNDER_WAY:
            raise expected(f"at most {MOST_UNDER_WAY} requests of all users", "pipeline")
        return self

    @property
    def most_under_way(self) -> int:
        return self.most_users * self.pipeline

    @property
    def files(self) -> dict[str, str]:
        return {} if self.send_file is None else {"send_file": self.send_file}


class CommandLoad(LoadBase):
    """Any other load generator, whose output file Tare can import."""

    type: Literal["command"]
    command: LoadCommand
    output: RelativePath
    """The file it writes, in the run's own folder."""
    format: str
    unit: Literal["ns", "us", "ms", "s"] | None = None
    """Of times in a file that does not state it."""
    columns: dict[str, str] = {}
    """Columns of a table that has names of its own, by their meaning (`start`, `duration` ...)."""
    path: UrlPath = "/"
    warmup: Duration = 0
    """Requests in this time from the first request are left out."""
    duration: SomeDuration = 60 * 10**9
    """About how long it takes; it is stopped after twice that and 10 s more."""
    max_errors: Fraction = 0.01

    needs_capacity: bool = Field(False, init=False, exclude=True)


def _own_load(value: Any) -> Any:
    return {"type": DEFAULT_TYPE, **value} if isinstance(value, dict) else value


Load = Annotated[
    Annotated[TareLoad | TcpLoad | CommandLoad, Field(discriminator="type")],
    BeforeValidator(_own_load),
]
