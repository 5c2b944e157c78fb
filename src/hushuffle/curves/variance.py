"""The variance of estimated frequencies, over the randomizers' coins, the people's values held fixed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hushuffle.errors import NumericalError
from hushuffle.mechanisms.randomizers import support_law

if TYPE_CHECKING:
    from hushuffle.mechanisms.protocol import Protocol

QUESTION = "Frequency estimation"


def frequency_variance(protocol: Protocol) -> tuple[float, float]:
    """Return (a, b): the variance of an estimated frequency whose true value is p is a + b p.

    Where the number of dummies is random this is the mean over it: the estimate is unbiased whatever is drawn.

    Source: docs/theory/estimation.md, Theorems 1 and 2; docs/theory/dummies.md, Theorem 5.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=2.0), shuffler=hs.UniformShuffle(), n=100)
    >>> [round(part, 6) for part in frequency_variance(survey)]
    [0.00181, 0.0]
    """
    law = support_law(protocol.randomizer, for_what=QUESTION)
    n, dummies = protocol.n, protocol.shuffler.expected_dummies
    holder, other = law.true * (1 - law.true), law.false * (1 - law.false)
    from_dummies = dummies * law.dummy * (1 - law.dummy) / n
    if law.true <= law.false:
        message = "reports hardly depend on the values: no float tells the frequencies apart. Use a larger epsilon."
        raise NumericalError(message)
    scale = n * (law.true - law.false) ** 2
    return (other + from_dummies) / scale, (holder - other) / scale
