# SPDX-License-Identifier: Apache-2.0
"""Recommendation 10: the experiment has several environments of different configuration."""

from tare.lab.recommendations.check_result import CheckResult, broken, kept
from tare.plan import Plan


def judge(plan: Plan) -> CheckResult:
    """Environments that differ by their names only count once."""
    different = {
        environment.model_copy(update={"name": ""}).model_dump_json()
        for environment in plan.environments
    }
    names = ", ".join(plan.environment_names)
    if len(different) > 1:
        return kept(f"the plan has {len(different)} different environments: {names}")
    return broken(f"the plan has one environment: {names}")
