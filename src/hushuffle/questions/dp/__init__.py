"""Central differential privacy of what the shuffler releases.

`epsilon` and `delta` are certified brackets, `certificate` is one with all it takes to check it; `compose` and
`parallel` combine rounds (`per_person`: with several reports of each person), `waves` asks the same people for memoised
reports (`change_shows`: a change of a value in them); `profile` is the whole curve and what tests and guesses can do;
`calibrate` solves for a parameter. No guarantees: `approximate` answers at once, `instance` looks at one given dataset,
`published` holds the literature's bounds, to compare.
"""

from hushuffle.questions.dp import published
from hushuffle.questions.dp.accounting import from_pld, to_pld
from hushuffle.questions.dp.approximation import approximate, information
from hushuffle.questions.dp.calibration import Calibration, calibrate
from hushuffle.questions.dp.central import delta, epsilon, instance, local_epsilon, per_person
from hushuffle.questions.dp.certificate import certificate
from hushuffle.questions.dp.composition import compose, compose_delta, parallel
from hushuffle.questions.dp.curve import profile
from hushuffle.questions.dp.memoised import change_shows, waves

__all__ = [
    "Calibration",
    "approximate",
    "calibrate",
    "certificate",
    "change_shows",
    "compose",
    "compose_delta",
    "delta",
    "epsilon",
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
