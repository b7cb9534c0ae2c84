# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest

from tare.errors import InputError
from tare.plan import parse

PLAN = """\
name = "collected"
budget = "3%"
{top}
[service]
command = "serve {{port}}"
[collect]
pipeline = "jaeger-kafka-elasticsearch"
{collect}
[[conditions]]
name = "plain"
[[conditions]]
name = "traced"
layers = [{layer}]
"""
SPANS = '{ type = "spans" }'


def plan(top: str = "", collect: str = "", layer: str = SPANS) -> str:
    return PLAN.format(top=top, collect=collect, layer=layer)


def test_a_pipeline_has_defaults() -> None:
    found = parse(plan(), "plan.toml", Path()).collect
    assert found is not None
    assert (found.pipeline, found.programs) == ("jaeger-kafka-elasticsearch", None)
    assert found.timeout == 60 * 10**9


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (plan(layer=""), "expected a layer spans in some condition"),
        (plan('environments = ["pod"]'), "expected no environment of type pod with collect"),
        (plan(collect="queue = 0"), "plan.toml:8: collect.queue: "),
        (plan().replace("jaeger-kafka", "zipkin-kafka"), "plan.toml:7: collect.pipeline: "),
        (
            plan('design = "alternating"', layer=f'{SPANS}, {{ type = "map" }}').replace(
                'name = "plain"', f'name = "plain"\nlayers = [{SPANS}]'
            ),
            'expected design = "blocks" or "interleaved" with collect',
        ),
    ],
)
def test_a_plan_that_no_span_can_travel_by_is_refused(text: str, error: str) -> None:
    with pytest.raises(InputError) as raised:
        parse(text, "plan.toml", Path())
    assert error in str(raised.value)
    assert "\n" not in str(raised.value)
