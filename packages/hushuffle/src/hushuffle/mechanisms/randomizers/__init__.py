"""Local randomizers, which turn a person's value into a report on the person's device; each file has one mechanism."""

from hushuffle.mechanisms.randomizers.base import Mechanism, in_blocks, support_law, symmetric_law
from hushuffle.mechanisms.randomizers.bit_flipping import BitFlipping
from hushuffle.mechanisms.randomizers.hadamard_response import HadamardResponse
from hushuffle.mechanisms.randomizers.level_noise import DiscreteLaplace, RoundedGaussian
from hushuffle.mechanisms.randomizers.local_hashing import LocalHashing
from hushuffle.mechanisms.randomizers.matrix import MatrixRandomizer
from hushuffle.mechanisms.randomizers.randomized_response import RandomizedResponse, RoundedResponse
from hushuffle.mechanisms.randomizers.report_law import Bits, Blanket, Matrix, OneHot, ReportLaw, Support, Symmetric
from hushuffle.mechanisms.randomizers.square_wave import SquareWave
from hushuffle.mechanisms.randomizers.subset_selection import SubsetSelection
from hushuffle.mechanisms.randomizers.target_sampling import Convention, TargetSampling
from hushuffle.mechanisms.randomizers.unary_encoding import UnaryEncoding
from hushuffle.mechanisms.randomizers.value_laws import ValueLaws

__all__ = [
    "BitFlipping",
    "Bits",
    "Blanket",
    "Convention",
    "DiscreteLaplace",
    "HadamardResponse",
    "LocalHashing",
    "Matrix",
    "MatrixRandomizer",
    "Mechanism",
    "OneHot",
    "RandomizedResponse",
    "ReportLaw",
    "RoundedGaussian",
    "RoundedResponse",
    "SquareWave",
    "SubsetSelection",
    "Support",
    "Symmetric",
    "TargetSampling",
    "UnaryEncoding",
    "ValueLaws",
    "in_blocks",
    "support_law",
    "symmetric_law",
]
