"""Central differential privacy of what the shuffler releases.

`epsilon` and `delta` return certified brackets; `epsilons` those for many deltas or
numbers of people; `certificate` returns a bracket with the data to check it.
`compose` and `parallel` combine rounds; `per_person` describes a round with several reports of each person.
`waves` is for repeated collections with memoised reports. `change_shows` returns the probability that a changed value
is visible in such collections. `explain` returns the theorems behind a figure. `profile` returns the whole privacy
curve. `calibrate` solves for a parameter. Two members give no guarantee: `approximate` is fast, and `instance` is for
one given dataset. `published` has bounds of the literature, for comparison.
"""

from hushuffle.questions.dp import published
from hushuffle.questions.dp.accounting import from_pld, to_pld
from hushuffle.questions.dp.approximation import approximate, information
from hushuffle.questions.dp.calibration import Calibration, calibrate
from hushuffle.questions.dp.central import delta, epsilon, epsilons, instance, local_epsilon, per_person
from hushuffle.questions.dp.certificate import certificate
from hushuffle.questions.dp.composition import change_shows, compose, compose_delta, parallel, waves
from hushuffle.questions.dp.curve import profile
from hushuffle.questions.dp.explanation import Explanation, explain

__all__ = [
    "Calibration",
    "Explanation",
    "approximate",
    "calibrate",
    "certificate",
    "change_shows",
    "compose",
    "compose_delta",
    "delta",
    "epsilon",
    "epsilons",
    "explain",
    "from_pld",
    "information",
    "instance",
    "local_epsilon",
    "parallel",
    "per_person",
    "profile",
    "published",
    "to_pld",
    "waves",
]
