# SPDX-License-Identifier: Apache-2.0
"""Plans whose load is HTTP/2 or under TLS."""

import pytest
from tests.lab.conftest import NGINX_CONF, OWN_LOAD, Experiment
from tests.load import tls


@pytest.mark.parametrize("trust", ['ca = "tls/certificate.pem"', "insecure = true"])
@pytest.mark.parametrize("http", ["1.1", "2"])
def test_a_load_under_tls(experiment: Experiment, http: str, trust: str) -> None:
    signed, key = tls.certificate(experiment.folder / "tls")
    log = experiment.folder / "requests.log"
    nginx = NGINX_CONF.replace(
        "server { listen {address}:{port};",
        f"log_format used '$server_protocol $https'; server {{"
        " listen {address}:{port} ssl http2;"
        f" ssl_certificate {signed}; ssl_certificate_key {key}; access_log {log} used;",
    )
    experiment.write_plan(
        load=f'{OWN_LOAD}http = "{http}"\nhttps = true\n{trust}',
        nginx=nginx,
    )
    text = experiment.plan.read_text().replace('{ http = "/", timeout = "60s" }', "{ tcp = true }")
    experiment.plan.write_text(text)
    done = experiment.measure(blocks=1)
    assert done.returncode == 0, done.stderr
    assert [run["reason"] for run in experiment.manifest["runs"]] == [None] * 3
    requests = set(log.read_text().splitlines())
    assert requests == {f"HTTP/{'2.0' if http == '2' else '1.1'} on"}
