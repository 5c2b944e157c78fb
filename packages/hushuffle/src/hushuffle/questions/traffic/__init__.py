"""Privacy of message traffic, in which the target of a message depends on private data.

`sampling_epsilon` and `scrambler_epsilon` are for one step; the private value is the target of a message.
`plan_guarantee` and `plan_delta` are for a whole plan (`hushuffle.plans`): all steps that one data item reaches.
`traffic_and_releases` returns separate epsilons of the traffic and of the releases. `collusions` is for colluding
scramblers. `cheapest` chooses sampling, dummies and batches. `published` has formulas of Ladjel et al. 2021.
"""

from hushuffle.questions.traffic import published
from hushuffle.questions.traffic.calibration import Configuration, cheapest
from hushuffle.questions.traffic.plan import (
    Collusion,
    cluster_guarantees,
    collusions,
    plan_delta,
    plan_guarantee,
    sampling_epsilon,
    scrambler_epsilon,
    theorem_one,
    traffic_and_releases,
)

__all__ = [
    "Collusion",
    "Configuration",
    "cheapest",
    "cluster_guarantees",
    "collusions",
    "plan_delta",
    "plan_guarantee",
    "published",
    "sampling_epsilon",
    "scrambler_epsilon",
    "theorem_one",
    "traffic_and_releases",
]
