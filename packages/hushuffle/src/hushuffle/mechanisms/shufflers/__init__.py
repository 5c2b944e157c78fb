"""Shufflers, which release the people's messages in a random order."""

from hushuffle.mechanisms.shufflers.augmented_shuffle import AugmentedShuffle
from hushuffle.mechanisms.shufflers.base import NoShuffle, Reveals, Shuffler, UniformShuffle
from hushuffle.mechanisms.shufflers.blanket_messages import BlanketMessages
from hushuffle.mechanisms.shufflers.dummy_law import DummyLaw
from hushuffle.mechanisms.shufflers.fakes_per_value import FakesPerValue
from hushuffle.mechanisms.shufflers.mallows import MallowsShuffle, sample_mallows
from hushuffle.mechanisms.shufflers.scrambler import Scrambler
from hushuffle.mechanisms.shufflers.secure_aggregation import SecureAggregation
from hushuffle.mechanisms.shufflers.source import NO_NOISE, GeometricDummies, LaplaceNoise, Source, Trials

__all__ = [
    "NO_NOISE",
    "AugmentedShuffle",
    "BlanketMessages",
    "DummyLaw",
    "FakesPerValue",
    "GeometricDummies",
    "LaplaceNoise",
    "MallowsShuffle",
    "NoShuffle",
    "Reveals",
    "Scrambler",
    "SecureAggregation",
    "Shuffler",
    "Source",
    "Trials",
    "UniformShuffle",
    "sample_mallows",
]
