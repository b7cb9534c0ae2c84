# SPDX-License-Identifier: Apache-2.0
"""The answer of an HTTP server, or one line that says why there is none."""

from __future__ import annotations

from http.client import HTTPException
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from tare.errors import InputError, TareError

SLOWEST_S = 60
SHOWN = 200


def http_body(request: str | Request, url: str, server: str, largest: int) -> bytes:
    """The body of an answer; of a larger body `largest` + 1 bytes.

    Errors begin with `url`, the address that a person gave of `server`. Raises InputError if the
    server refuses the request, TareError if it fails.
    """
    try:
        with urlopen(request, timeout=SLOWEST_S) as answer:
            body: bytes = answer.read(largest + 1)
    except HTTPError as error:
        kind = InputError if error.code < 500 else TareError
        with error:
            text = error.read(SHOWN).decode(errors="replace")
        raise kind(f"{url}: HTTP status {error.code}: {text or error.reason}") from error
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", None) or error or type(error).__name__
        raise TareError(f"{url}: {reason}; is it {server}?") from error
    return body
