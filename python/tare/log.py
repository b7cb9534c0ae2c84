# SPDX-License-Identifier: Apache-2.0
"""Event logging for Python programs: into shared memory that survives `kill -9`.

    from tare.log import Channel, Span

    requests = Channel("requests")
    requests.log(42)

    work = Span("work")
    with work.numbered(42):
        ...

It imports nothing else of Tare. `tare log run -- python PROGRAM` collects the events; where
nobody collects, they are discarded. docs/log.md has the rest, log.pyi the types.
"""

from functools import wraps
from importlib.machinery import ExtensionFileLoader, ModuleSpec

from tare.native import native

__all__ = ["Channel", "Span"]


def _load():
    """The extension, which stands with the other native parts."""
    path = native("lib", "tare_log.abi3.so")
    loader = ExtensionFileLoader("tare.log.tare_log", path)
    try:
        extension = loader.create_module(ModuleSpec(loader.name, loader, origin=path))
        loader.exec_module(extension)
    except ImportError as error:
        raise ImportError(f"tare.log cannot be used here: {error}") from error
    return extension


_extension = _load()
Channel, Span = _extension.Channel, _extension.Span

# Of a function's code: what it returns has not run yet (inspect, which names these, is large).
_RUNS_LATER = 0x20 | 0x80 | 0x200


def _around(span, function):
    """What `@span` makes of a function; a span calls it."""
    code = getattr(function, "__code__", None)
    if code is not None and code.co_flags & _RUNS_LATER:
        raise TypeError(
            f"{function.__qualname__} is a coroutine or a generator, which runs after the call"
            f" returns: use `with` inside the function"
        )

    @wraps(function)
    def logged(*arguments, **words):
        with span:
            return function(*arguments, **words)

    return logged
