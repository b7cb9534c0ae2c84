# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from typing import Literal, ParamSpec, TypeVar, final

from typing_extensions import Buffer

_P = ParamSpec("_P")
_R = TypeVar("_R")
_Codec = Literal["none", "zstd", "lz4", "lzo1x"]
_Policy = Literal["drop", "wait", "overwrite"]

__all__ = ["Channel", "Span"]

@final
class Channel:
    def __new__(
        cls,
        name: str,
        /,
        *,
        handler: str | None = None,
        policy: _Policy | None = None,
        codec: _Codec | None = None,
        a: int = 0,
        b: int = 0,
    ) -> Channel: ...
    def log(self, number: int, /) -> None: ...
    def bytes(self, data: Buffer, /) -> None: ...
    def close(self) -> None: ...

@final
class Span:
    def __new__(cls, name: str, /, *, policy: _Policy | None = None) -> Span: ...
    def numbered(self, number: int, /) -> Span: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *_raised: object) -> None: ...
    def __call__(self, function: Callable[_P, _R], /) -> Callable[_P, _R]: ...
