"""Shufflers: laws over orderings of the messages."""

from hushuffle.shufflers.base import Reveals, Shuffler
from hushuffle.shufflers.scrambler import Scrambler
from hushuffle.shufflers.uniform import NoShuffle, UniformShuffle

__all__ = ["NoShuffle", "Reveals", "Scrambler", "Shuffler", "UniformShuffle"]
