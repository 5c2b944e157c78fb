"""Membership-inference game on Bloom filters."""

from __future__ import annotations

from typing import Final

import numpy as np

from hushuffle.attacks.games import Game, Integers, Named, Terms, enough, fair, refuse, tell_apart
from hushuffle.mechanisms.randomizers import BitFlipping
from hushuffle.mechanisms.sketches import BloomEncoder, BloomFilter, logo_counts
from hushuffle.questions import bloom, dp
from hushuffle.randomness import Randomness

_MOST_PEOPLE: Final = 20_000_000
_CANDIDATES: Final = 50


def filter_games(*, audiences: Integers, bits: int, p: float, hashes: int = 1) -> list[Named]:
    """Return the membership-inference game on released filters: was the target in every audience, or in none?

    The adversary knows the key and all other people's audiences; `audiences[i]` counts people in exactly those of set
    bits i, shape (2**k,). The certified success is 1/2 + TV/2; TV is at most `hashes` times that of one column.

    Source: docs/theory/randomizers.md, Theorem 18.

    >>> from hushuffle.randomness import reproducible
    >>> ((name, play),) = filter_games(audiences=np.array([0, 20, 10, 5]), bits=100, p=0.25)
    >>> game = play(Terms(rng=reproducible(1)))
    >>> print(f"{name}: certified {game.certified.upper:.3f}, broken: {game.broken}")
    Infer membership in the audiences: certified 0.544, broken: False
    """
    return [("Infer membership in the audiences", lambda terms: _member(audiences, bits, p, hashes, terms))]


def _member(audiences: Integers, bits: int, p: float, hashes: int, terms: Terms) -> Game:
    publishers = int(audiences.size).bit_length() - 1
    enough(terms.releases, bits * publishers)
    if audiences.sum() * hashes > _MOST_PEOPLE:
        refuse(f"The game on Bloom filters was not played: all people would set over {_MOST_PEOPLE:,} bits.")
    protocol = bloom.snr.columns(publishers, bits, p)
    column = dp.delta(protocol, epsilon=0.0)
    encoder = BloomEncoder(bits=bits, hashes=hashes, key=terms.rng.words(4).tobytes())
    logos = _filled(audiences, bits, hashes, terms.rng)
    ones = [np.packbits((logos >> bit & 1).astype(np.bool_)) for bit in range(publishers)]
    without = [BloomFilter(bits=bits, hashes=hashes, key_check=encoder.key_check, packed=packed) for packed in ones]
    # The target is a person whose columns are set by the fewest other people: the easiest one.
    names = [f"person {place}" for place in range(_CANDIDATES)]
    name = names[int(np.bitwise_count(logos[encoder.positions(names)]).sum(axis=1).argmin())]
    person, touched = encoder.encode([name]), np.unique(encoder.positions([name]))
    both, flips = (without, [each | person for each in without]), BitFlipping(width=1, p=p)

    law = bloom.transition_matrix(publishers, p)
    crowd = np.bincount(logos, minlength=audiences.size) @ law / bits
    worth = (law[-1] - law[logos[touched]]).sum(axis=0) / crowd

    def run(world: int) -> float:
        released = [each.flip(randomizer=flips, rng=terms.rng) for each in both[world]]
        return float(logo_counts(released).counts @ worth)

    return Game(
        what="whether a person is in every audience or in none",
        attacker="knows all other members and the hash key",
        success=tell_apart(run, terms),
        certified=fair(column.upper * hashes, column),
    )


def _filled(audiences: Integers, bits: int, hashes: int, rng: Randomness) -> Integers:
    """Return how many audiences of other people set each bit column, shape (bits,), at uniform positions."""
    logos = np.zeros(bits, dtype=np.int64)
    sets = np.repeat(np.arange(audiences.size), audiences * hashes)
    np.bitwise_or.at(logos, rng.integers(bits, sets.size), sets)
    return logos
