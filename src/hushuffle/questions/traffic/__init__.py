"""What message traffic reveals: where a message goes depends on what is in it.

`sampling_epsilon` and `scrambler_epsilon` are about one step; the private value is the target of a message.
`plan_guarantee` is about a whole plan (`hushuffle.plans`), every step that one data item reaches, and `plan_delta`;
`traffic_and_releases` takes it apart, `collusions` says what scramblers that work together learn.
`cheapest` chooses sampling, dummies and batches. What the paper computes is in `published`, for comparison.
"""

from hushuffle.questions.traffic import published
from hushuffle.questions.traffic.calibration import Configuration, cheapest
from hushuffle.questions.traffic.cascade import Collusion, collusions
from hushuffle.questions.traffic.plan import (
    cluster_guarantees,
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
