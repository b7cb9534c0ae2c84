# SPDX-License-Identifier: Apache-2.0
"""openssl: server and client, TLS 1.2 and 1.3, a certificate that is not trusted."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.hook.hooked import Behaviour, plain
from tests.hook.programs.ways import Command, Wrap, both, free_port, need, serving

LINES = "".join(f"line {number}\n" for number in range(500)) + "CLOSE\n"


@pytest.mark.parametrize("version", ["-tls1_2", "-tls1_3"])
def test_openssl(version: str, tmp_path: Path) -> None:
    need("openssl")
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    request = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost"]
    done = plain([*request, "-keyout", key, "-out", certificate], tmp_path)
    assert done.code == 0, done.err
    files: Command = ["-cert", certificate, "-key", key]

    def session(wrap: Wrap) -> list[Behaviour]:
        port = free_port()
        # Sends back every line reversed.
        server = ["openssl", "s_server", "-accept", f"127.0.0.1:{port}", "-rev", *files]
        client = ["openssl", "s_client", "-quiet", version, "-verify_return_error"]
        client += ["-connect", f"127.0.0.1:{port}"]
        with serving(wrap(server), port, code=143):
            ways: list[Command] = [[], ["-CAfile", certificate]]
            done = [plain(wrap([*client, *trust]), tmp_path, stdin=LINES) for trust in ways]
        # Its errors begin with the number of a thread.
        return [
            replace(behaviour, err=re.sub("^[0-9A-F]+:", "", behaviour.err, flags=re.M))
            for behaviour in done
        ]

    refused, exchange = both(session, tmp_path)
    assert refused.code == 1
    assert exchange.code == 0, exchange.err
    assert exchange.out.startswith("0 enil\n1 enil\n")
    assert exchange.out.endswith("\n994 enil\n")
