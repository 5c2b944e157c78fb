"""What message traffic reveals: where a message goes depends on what is in it.

`sampling_epsilon` and `scrambler_epsilon` are about one step; the private value is the target of a message.
`plan_guarantee` is about a whole plan (`hushuffle.plans`), every step that one data item reaches.
"""

from hushuffle.analysis.traffic.messages import sampling_epsilon, scrambler_epsilon
from hushuffle.analysis.traffic.plan import cluster_guarantees, plan_guarantee, theorem_one

__all__ = ["cluster_guarantees", "plan_guarantee", "sampling_epsilon", "scrambler_epsilon", "theorem_one"]
