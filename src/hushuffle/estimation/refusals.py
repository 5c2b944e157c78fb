"""Compute how likely servers that refuse vectors with too many 1 bits refuse an honest client's vector."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hushuffle import _checks
from hushuffle.errors import UnsupportedProtocolError
from hushuffle.model import Bound
from hushuffle.numerics import binomial

if TYPE_CHECKING:
    from hushuffle.mechanisms.randomizers import Mechanism


def refused(randomizer: Mechanism, *, most_ones: int) -> Bound:
    """Return the probability that an honest one-hot encoding has more 1 bits than servers accept, for any value.

    At least one of n reports is refused with probability at most n times this probability p. Refusals add
    (1 + e**epsilon) n p to delta. A Sybil client can then raise at most `most_ones` shares at once.

    Args:
        randomizer: a one-hot encoding of k bits.
        most_ones: the limit, 0 to k.

    Raises:
        InvalidInputError: `most_ones` is out of range.
        UnsupportedProtocolError: another randomizer.

    Source: docs/theory/secure-sums.md, Theorem 9.

    >>> import hushuffle as hs
    >>> encoding = hs.UnaryEncoding(k=100, epsilon=8.0, kind="symmetric")
    >>> print(refused(encoding, most_ones=4), refused(encoding, most_ones=20))
    0.1026 (exact) 1.355e-15 (exact)
    """
    law = randomizer.law().one_hot
    if law is None:
        message = f"A limit on ones needs a one-hot encoding, not {type(randomizer).__name__}."
        raise UnsupportedProtocolError(message)
    most = _checks.integer("most_ones", most_ones, low=0, high=law.k)
    truthful, raised = float(law.kept), float(law.raised)
    own, rest = (float(binomial.upper_tail(most + place, law.k - 1, raised)) for place in (0, 1))
    return Bound.exact(truthful * own + (1 - truthful) * rest, unit="probability")
