# SPDX-License-Identifier: Apache-2.0
"""What the report's terms mean."""

VERDICTS = {
    "slower": "The condition is slower beyond chance, and the difference is not shown to be within"
    " the budget.",
    "faster": "The condition is faster beyond chance, and the difference is not shown to be within"
    " the budget.",
    "unchanged": "The difference, if there is any, is smaller than the budget.",
    "shape-changed": "The middle is unchanged, but the spread or the tail is not.",
    "inconclusive": "The runs show neither a difference nor its absence. More runs may.",
    "invalid": "The experiment itself failed: it says nothing about the condition.",
}

WORDS = {
    "condition": "A service with its layers in its environment. One condition is the baseline; all"
    " others are compared with it.",
    "layer": "A thing between a service and its users, such as a hook or a proxy.",
    "run": "A fresh start of the service, a warm-up, and a measured window of load.",
    "block": "One run of every condition, in random order. The runs of a block met the same machine"
    " at about the same time, so they are compared with each other.",
    "slice": "A few milliseconds of load on one condition. Slices of the conditions alternate, so"
    " that a disturbance hits all of them alike. A slice in which another program had the CPU is"
    " left out for all conditions together.",
    "independent": "The number of independent requests that would show a run's level as well as all"
    " of its own requests do. Requests that follow each other are alike, so it is smaller.",
    "effect": "The difference from the baseline in percent, and in time per request.",
    "interval": "The differences that the runs are compatible with. In 95 of 100 experiments it"
    " contains the true difference.",
    "budget": "The smallest difference that matters. The plan sets it before the experiment.",
    "threshold": "The smallest difference that is judged: the budget, or the smallest difference"
    " that these runs can detect on this machine if that is larger.",
    "control": "The baseline once more in every block, under another name. It needs six blocks.",
    "p50, p95, p99": "50, 95 or 99 of 100 requests take less than this time. p50 is the median.",
    "primary metric": "The metric that decides the verdict. The plan sets it. All other metrics are"
    " exploratory.",
    "p": "How often chance alone, without any difference, gives a difference at least as large. It"
    " is not the probability that there is no difference.",
    "p adjusted": "p after a correction for the number of comparisons: among many metrics, one"
    " has a small p by chance.",
    "KS, AD": "The distance between the distributions of two runs, after Kolmogorov and Smirnov,"
    " and after Anderson and Darling. AD gives the tails more weight.",
    "detectable": "The difference that this number of runs finds in four of five experiments.",
    "needed": "The number of runs of each condition that probably gives a verdict.",
    "own time": "Time inside of a layer without the call that it forwards, by the layer's own"
    " clock.",
    "steal": "CPU time that the hypervisor gave to other virtual machines.",
}
