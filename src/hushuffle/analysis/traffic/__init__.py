"""What message traffic reveals: where a message goes depends on what is in it.

`sampling_epsilon` and `scrambler_epsilon` are about one step; the private value is the target of a message.
"""

from hushuffle.analysis.traffic.messages import sampling_epsilon, scrambler_epsilon

__all__ = ["sampling_epsilon", "scrambler_epsilon"]
