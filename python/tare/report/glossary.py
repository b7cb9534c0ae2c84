# SPDX-License-Identifier: Apache-2.0
"""The report's words, in plain language."""

VERDICTS = {
    "slower": "It differs beyond chance, and the difference is not shown to be within the budget.",
    "faster": "As slower, the other way round.",
    "unchanged": "Whatever difference there is, it is smaller than the budget.",
    "shape-changed": "The middle stayed, but the spread or the tail did not.",
    "inconclusive": "The runs do not settle it: neither a difference nor its absence is shown.",
    "invalid": "The experiment itself failed; no conclusion about the condition may be drawn.",
}

WORDS = {
    "condition": "A service with its layers in its environment. All are compared with one of them, "
    "the baseline.",
    "layer": "One thing put between a service and its users, such as a hook or a proxy.",
    "run": "A fresh start of the service, a warm-up, and a measured stretch of load.",
    "block": "One run of every condition, in random order. Runs of a block met the same machine at "
    "about the same time, so they are compared with each other.",
    "slice": "A few milliseconds of load on one condition. Slices of the conditions alternate, so "
    "that what disturbs the machine hits all alike. Where something else had the CPU, slices are "
    "left out for all conditions together.",
    "independent": "How many independent requests would tell a run's level as well as all of its "
    "own do. Neighbours in time resemble each other, so these are fewer.",
    "effect": "The difference from the baseline in percent, and in time for one request.",
    "interval": "The differences that the runs are compatible with: of many experiments, 95 in 100 "
    "have the true one in it.",
    "budget": "The smallest difference that matters, set in the plan before the experiment.",
    "threshold": "The smallest difference that is judged: the budget, or what these runs on this "
    "machine can tell apart where that is more.",
    "control": "The baseline once more in every block, under another name. With fewer than six "
    "blocks it cannot tell yet.",
    "p50, p95, p99": "The time that 50, 95 or 99 of 100 requests stay below. p50 is the median.",
    "primary metric": "The one that decides the verdict, chosen in the plan. All others are looked "
    "at without deciding.",
    "p": "How often chance alone, with no difference at all, would give one at least as large. It "
    "is not the probability that there is no difference.",
    "p adjusted": "The same, corrected for how many metrics were looked at.",
    "KS, AD": "How far the distributions of two runs lie apart, after Kolmogorov and Smirnov, and "
    "after Anderson and Darling, who see the tails better.",
    "detectable": "The difference that this number of runs would find in four experiments of five.",
    "needed": "How many runs of each condition would probably settle it.",
    "own time": "Time inside a layer without the call that it stands in front of, by the layer's "
    "own clock.",
    "steal": "CPU time that the machine below gave to others.",
}
