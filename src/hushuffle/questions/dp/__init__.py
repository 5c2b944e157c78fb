"""Central differential privacy of what the shuffler releases.

`epsilon` and `delta` return certified brackets; `certificate` returns a bracket with the data to check it.
`compose` and `parallel` combine rounds; `per_person` describes a round with several reports of each person.
`waves` is for repeated collections with memoised reports, and `change_shows` for the visibility of changes in them.
`profile` returns the whole privacy curve, and bounds for tests and guesses. `calibrate` solves for a parameter.
Three members give no guarantee: `approximate` is fast, `instance` is for one given dataset, and `published` has bounds
of the literature for comparison.
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
