"""Shufflers: laws over orderings of the messages."""

from hushuffle.mechanisms.shufflers.base import Reveals, Shuffler
from hushuffle.mechanisms.shufflers.dummy_law import DummyLaw
from hushuffle.mechanisms.shufflers.mallows import MallowsShuffle, sample_mallows
from hushuffle.mechanisms.shufflers.scrambler import Scrambler
from hushuffle.mechanisms.shufflers.secure_aggregation import SecureAggregation
from hushuffle.mechanisms.shufflers.uniform import NoShuffle, UniformShuffle

__all__ = [
    "DummyLaw",
    "MallowsShuffle",
    "NoShuffle",
    "Reveals",
    "Scrambler",
    "SecureAggregation",
    "Shuffler",
    "UniformShuffle",
    "sample_mallows",
]
