# SPDX-License-Identifier: Apache-2.0
"""What the kinds of errors that tare-load reports mean, and what a plan can change."""

from tare.lab.result.measured import Measured
from tare.plan import CommandLoad, OwnLoad, TareLoad, TcpLoad

_NO_HTTP = "for a service without HTTP use type = tcp (--load type=tcp)"
_HTTP = {
    "closed": f"the service closed the connection before it answered; {_NO_HTTP}",
    "protocol": f"the answers are not HTTP; {_NO_HTTP}",
    "timeout": f"no answer within the timeout; {_NO_HTTP}",
    "tls": "no TLS session; check https, ca and insecure",
    "body": "the answers have another body; check expect_body",
}
_TCP = {
    "closed": "the service closed the connection before the end of the reply; check send",
    "protocol": "the replies are not of the protocol that reply names",
    "timeout": "no end of the reply within the timeout; check reply, reply_until or reply_bytes",
    "limit": "the replies are longer than reply_limit",
    "status": "the replies are errors; check send",
}


def most_frequent(found: Measured, load: OwnLoad | CommandLoad) -> str | None:
    """The most frequent error in a sentence; None without an error of a known kind."""
    kinds = found.errors_by_kind
    if not kinds:
        return None
    kind = max(kinds, key=kinds.__getitem__)
    if isinstance(load, TareLoad) and kind == "status":
        import pyarrow.compute as pc

        failed = found.samples.filter(pc.invert(found.samples["ok"]))
        status = pc.mode(failed["status"])[0]["mode"]
        return f"status {status}; check path, or allow it with expect_status"
    return (_TCP if isinstance(load, TcpLoad) else _HTTP).get(kind, kind)
