# SPDX-License-Identifier: Apache-2.0
"""Which option of `tare run` sets which key of a plan, so that errors can name the option."""

from tare.plan.lines import Path

OPTIONS = "the options of the command line"
"""Instead of a file's name, where a plan was made from options."""

SET = "--set"
"""Sets keys of the plan's top level that have no option of their own."""

OPTION_OF: dict[Path, str] = {
    ("name",): "--name",
    ("budget",): "--budget",
    ("compare",): "--compare",
    ("baseline",): "--baseline",
    ("blocks",): "--blocks",
    ("seed",): "--seed",
    ("smoke",): "--smoke",
    ("environments",): "--environment",
    ("placement",): "--placement",
    ("service",): "--service",
    ("service", "command"): "--service",
    ("service", "files"): "--file",
    ("service", "port"): "--port",
    ("service", "ready"): "--ready",
    ("load",): "--load",
    ("conditions",): "--condition",
}


def option_of(path: Path) -> str:
    """The option for a key of the plan, followed by what of the key the option does not say."""
    for length in range(len(path), 0, -1):
        if option := OPTION_OF.get(path[:length]):
            rest = [str(step) for step in path[length:] if isinstance(step, str)]
            return " ".join([f"{option}:", *rest]).removesuffix(":")
    return " ".join([f"{SET}:", *map(str, path)]).removesuffix(":") if path else "the options"
