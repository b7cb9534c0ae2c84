# SPDX-License-Identifier: Apache-2.0
"""A proxy in front of the service, as a side-car has it: the load goes to the proxy."""

from pathlib import Path

from tare.lab.environments.launch import Launch, Proxy, RunError
from tare.lab.layers import link
from tare.lab.processes.processes import find
from tare.plan import expected
from tare.plan.schema.layers import ProxyLayer
from tare.plan.schema.placeholders import fill

MINIMAL = Path(__file__).parent / "proxies"
CONFIGS = {"envoy": "envoy.yaml", "haproxy": "haproxy.cfg", "nginx": "nginx.conf"}
COMMANDS = {
    "nginx": ["nginx", "-p", "{dir}", "-c", "{config}"],
    "haproxy": ["haproxy", "-db", "-f", "{config}"],
    "envoy": ["envoy", "-c", "{config}", "--concurrency", "1", "--use-dynamic-base-id"],
}


def check(layer: ProxyLayer, plan_folder: Path) -> None:
    """Refuses a program that is not installed, and a configuration that is not there."""
    if layer.link:
        link.check(layer, plan_folder)
    if find(layer.binary or layer.program) is None:
        key = "program" if layer.binary is None else "binary"
        raise expected("a program that is installed", key)
    if layer.config is not None and not (plan_folder / layer.config).is_file():
        raise expected(f"a file: {plan_folder / layer.config} does not exist", "config")


def put(layer: ProxyLayer, launch: Launch) -> None:
    """Writes the proxy's configuration and moves the door to its port.

    The user's own configuration has the same placeholders as the minimal configuration:
    {address}, {port} where the proxy listens, {upstream} where what is behind it listens, {dir},
    {name}, {plan}.
    """
    name = f"proxy{len(launch.proxies) + 1}-{layer.program}"
    values = {
        **launch.placeholders,
        "port": launch.environment.free_port(),
        "upstream": launch.door,
        "name": name,
    }
    minimal = MINIMAL / CONFIGS[layer.program]
    wanted = minimal if layer.config is None else launch.plan_folder / layer.config
    config = launch.folder / f"{name}{minimal.suffix}"
    try:
        text = fill(wanted.read_text(encoding="utf-8", errors="surrogateescape"), values)
        config.write_text(text, encoding="utf-8", errors="surrogateescape")
    except OSError as error:
        raise RunError(f"{error.filename}: {error.strerror}") from error
    words = [fill(word, {**values, "config": config}) for word in COMMANDS[layer.program]]
    if layer.binary is not None:
        words[0] = layer.binary
    if layer.link:
        words = link.linked(words, launch, f"link {name}")
    launch.proxies.append(Proxy(name, words, int(str(values["port"]))))
    launch.door = launch.proxies[-1].port
