"""Local randomizers: a channel from one person's value to one report, and its sampler."""

from hushuffle.randomizers.base import (
    Blanket,
    CountsReports,
    HasBlanket,
    HasChannel,
    HasSymmetricLaw,
    Randomizer,
    SupportProbabilities,
    Symmetric,
    require,
)
from hushuffle.randomizers.randomized_response import RandomizedResponse

__all__ = [
    "Blanket",
    "CountsReports",
    "HasBlanket",
    "HasChannel",
    "HasSymmetricLaw",
    "RandomizedResponse",
    "Randomizer",
    "SupportProbabilities",
    "Symmetric",
    "require",
]
