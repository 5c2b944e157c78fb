"""Shufflers: laws over orderings of the messages."""

from hushuffle.shufflers.base import Reveals, Shuffler
from hushuffle.shufflers.mallows import MallowsShuffle, sample_mallows
from hushuffle.shufflers.scrambler import Scrambler
from hushuffle.shufflers.uniform import NoShuffle, UniformShuffle

__all__ = ["MallowsShuffle", "NoShuffle", "Reveals", "Scrambler", "Shuffler", "UniformShuffle", "sample_mallows"]
