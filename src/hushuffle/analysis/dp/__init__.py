"""Central differential privacy of what the shuffler releases.

`epsilon` and `delta` are certified brackets; `compose` and `parallel` combine rounds; `calibrate` solves for a
parameter; `instance` looks at one given dataset (no guarantee); `published` holds the literature's bounds, to compare.
"""

from hushuffle.analysis.dp import published
from hushuffle.analysis.dp.calibration import Calibration, calibrate
from hushuffle.analysis.dp.central import delta, epsilon, local_epsilon
from hushuffle.analysis.dp.composition import compose, compose_delta, parallel
from hushuffle.analysis.dp.instance import instance

__all__ = [
    "Calibration",
    "calibrate",
    "compose",
    "compose_delta",
    "delta",
    "epsilon",
    "instance",
    "local_epsilon",
    "parallel",
    "published",
]
