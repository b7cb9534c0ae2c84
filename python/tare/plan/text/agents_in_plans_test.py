# SPDX-License-Identifier: Apache-2.0
"""Layers that cover the whole machine take turns."""

import pytest

from tare.errors import InputError
from tare.plan.text.parser_test import PLAN, error_of, read

AGENT = 'layers = [{ type = "agent", name = "probe", start = "probe --all" }]'
IN_TURNS = (
    PLAN[: PLAN.index("[load]")]
    + f"""
[[conditions]]
name = "off"

[[conditions]]
name = "on"
{AGENT}
"""
)


def test_a_layer_of_the_whole_machine_takes_turns() -> None:
    plan = read(IN_TURNS)
    assert plan.design_used == "alternating"
    assert (plan.turn, plan.turns, plan.settle) == (2 * 10**9, 8, 5 * 10**8)
    assert plan.has_whole_blocks
    assert read(PLAN).has_whole_blocks
    assert not read(PLAN.replace("seed = 7", 'design = "blocks"')).has_whole_blocks


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seed = 7", "turns = 7", "try.toml:3: turns: found 7, expected"),
        (
            "seed = 7",
            'design = "interleaved"',
            'try.toml:3: design: found "interleaved", expected design = "alternating": a layer'
            " covers the whole machine",
        ),
        (
            "seed = 7",
            'turn = "9ms"',
            'try.toml:3: turn: found "9ms", expected at least two slices of the load',
        ),
        (
            "[[conditions]]",
            '[load]\nduration = "5s"\n[[conditions]]',
            'load.duration: found "5s", expected turn and turns instead of a duration',
        ),
        (
            "[[conditions]]",
            '[load]\ntype = "command"\ncommand = "x"\noutput = "x"\nformat = "csv"\n[[conditions]]',
            "a load of Tare's own: the lab decides when the last turn ends",
        ),
        (
            'name = "off"',
            'name = "off"\nlayers = [{ type = "env", variables = { A = "1" } }]',
            "expected the same layers of the service in all conditions",
        ),
        (
            AGENT,
            AGENT.replace("}]", "}, { type = 'agent', name = 'probe', start = 'x' }]"),
            'expected agents with different names, not twice "probe"',
        ),
        (
            '"probe --all"',
            '"probe", stop = "kill"',
            "expected ready with stop: nothing else shows whether the agent runs",
        ),
        (AGENT, "", "no error"),
    ],
)
def test_what_does_not_fit_turns_is_refused(old: str, new: str, message: str) -> None:
    assert old in IN_TURNS
    text = IN_TURNS.replace(old, new, 1)
    if message == "no error":
        assert read(text).design_used == "interleaved"
        text = text.replace("seed = 7", 'design = "alternating"')
        message = "expected a layer that covers the machine (agent, map) in some condition"
    with pytest.raises(InputError) as caught:
        read(text)
    assert message in str(caught.value)


def test_turns_need_a_design_with_turns() -> None:
    assert 'try.toml:3: turn: found "1s", expected design = "alternating" with turn' in error_of(
        "seed = 7", 'turn = "1s"'
    )
