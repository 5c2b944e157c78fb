"""Local randomizers: a channel from one person's value to one report, and its sampler."""

from hushuffle.mechanisms.randomizers.base import (
    Blanket,
    CountsReports,
    HasBlanket,
    HasChannel,
    HasSymmetricLaw,
    HasValueLaws,
    Randomizer,
    SupportProbabilities,
    Symmetric,
    ValueLaws,
    has,
    require,
)
from hushuffle.mechanisms.randomizers.bit_flipping import BitFlipping
from hushuffle.mechanisms.randomizers.local_hashing import LocalHashing
from hushuffle.mechanisms.randomizers.matrix import MatrixRandomizer
from hushuffle.mechanisms.randomizers.randomized_response import RandomizedResponse
from hushuffle.mechanisms.randomizers.target_sampling import Convention, TargetSampling

__all__ = [
    "BitFlipping",
    "Blanket",
    "Convention",
    "CountsReports",
    "HasBlanket",
    "HasChannel",
    "HasSymmetricLaw",
    "HasValueLaws",
    "LocalHashing",
    "MatrixRandomizer",
    "RandomizedResponse",
    "Randomizer",
    "SupportProbabilities",
    "Symmetric",
    "TargetSampling",
    "ValueLaws",
    "has",
    "require",
]
