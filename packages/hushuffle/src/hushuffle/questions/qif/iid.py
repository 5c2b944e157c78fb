"""An adversary who knows the frequencies of the values, and no individual value.

Each person, the target included, has value x with probability frequencies[x], independently of all others.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from hushuffle import _checks
from hushuffle.errors import NumericalError
from hushuffle.mechanisms.adversaries import Uninformed
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.model import Bound
from hushuffle.model.citation import QIF, Citation
from hushuffle.questions.qif import mixture as mixture_ends
from hushuffle.questions.qif.bounds import gain_vulnerability
from hushuffle.questions.qif.gain import identity_gain
from hushuffle.questions.qif.guessing import over_dummies, vulnerability
from hushuffle.questions.qif.knowledge import QUESTION, symmetric_law
from hushuffle.questions.qif.mixture import ENTRIES_LIMIT, Mixture, two_values
from hushuffle.questions.qif.shuffled import Crowd
from hushuffle.randomness import Randomness, secure

if TYPE_CHECKING:
    import numpy.typing as npt

    from hushuffle.numerics.binomial import Floats

MAURER: Final = Citation(
    key="maurer2009",
    text="A. Maurer, M. Pontil, Empirical Bernstein bounds and sample variance penalization, COLT (2009)",
    where="Theorem 4",
)

VALUES_LIMIT: Final = 1_500
"""Maximum number of values for unequal frequencies."""

_UNIT: Final = "probability"
_BLOCK: Final = 1 << 21


def iid_prior_vulnerability(frequencies: npt.ArrayLike) -> Bound:
    """Return max_x frequencies[x]: the probability of a right guess without the release.

    Raises:
        InvalidInputError: `frequencies` is not a distribution.

    >>> import hushuffle as hs
    >>> print(hs.qif.iid_prior_vulnerability([0.5, 0.3, 0.2]))
    0.5000 (exact)
    """
    shares = np.asarray(frequencies)
    return Bound.exact(float(_shares(frequencies, shares.size).max()), unit=_UNIT, sources=(QIF.at("Definition 1"),))


def iid_vulnerability(
    protocol: Protocol,
    *,
    frequencies: npt.ArrayLike,
    samples: int = 0,
    confidence: float = 0.999,
    rng: Randomness | None = None,
) -> Bound:
    """Return the probability that an adversary with an i.i.d. prior guesses the target's value after the release.

    For randomized response, the result V is exact (relative error below 1e-12) in each of these cases: two values;
    equal frequencies; no shuffler; or at most `ENTRIES_LIMIT` counts in all histograms of n reports of k values (n up
    to about 20,000 for k = 3, 200 for k = 4, 70 for k = 5, 13 for k = 10). Otherwise V is a certified bracket: tight if
    one value is clearly the most frequent, else up to 60 % of V - 1/k wide. With `samples`, V is estimated from this
    number of simulated releases: the interval of Maurer and Pontil, cut to the bracket. The computation takes
    milliseconds, or seconds at 1,000 values. For other mechanisms, and for unequal frequencies of more than two values
    with dummies, the result is that of `gain_vulnerability`.

    Args:
        protocol: the collection; dummies are uniform reports.
        frequencies: probability of each value, shape (k,), sum 1.
        samples: number of simulated releases if the result is not exact; 0 returns the bracket.
        confidence: confidence of the estimate's interval.
        rng: randomness of the simulation (default: `secure()`).

    Raises:
        InvalidInputError: `frequencies` is not a distribution over the k values, or an argument is out of range.
        UnsupportedProtocolError: randomized response with a shuffler that reveals a noisy order, or a mechanism
            without a matrix and without a central guarantee.
        NumericalError: more than `VALUES_LIMIT` values with unequal frequencies, or n is too large, above 10**9.

    Source: Jurado et al. 2023, Definitions 2 and 13; docs/theory/guessing.md, Theorems 8 and 12.

    >>> import hushuffle as hs
    >>> voters = hs.RandomizedResponse.from_truth_probability(k=2, p=0.8)
    >>> survey = hs.Protocol(randomizer=voters, shuffler=hs.UniformShuffle(), n=200)
    >>> print(hs.qif.iid_vulnerability(survey, frequencies=[0.5, 0.5]),
    ...     hs.qif.iid_vulnerability(survey, frequencies=[0.45, 0.55]))
    0.5169 (exact) 0.5501 (exact)
    """
    _checks.of_type("protocol", protocol, Protocol)
    protocol = protocol.secret
    if protocol.shuffler.dummy_law is not None:
        return over_dummies(
            protocol,
            lambda given: iid_vulnerability(
                given, frequencies=frequencies, samples=samples, confidence=confidence, rng=rng
            ),
            floor=iid_prior_vulnerability(frequencies).lower,
        )
    shares = _shares(frequencies, protocol.randomizer.inputs)
    if protocol.randomizer.law().symmetric is None:
        return _at_most(protocol, shares)
    law = symmetric_law(protocol)
    drawn = _checks.integer("samples", samples, low=0, high=10**8)
    level = _checks.probability("confidence", confidence, low_open=True, high_open=True)
    reveals, dummies = protocol.reveals, protocol.shuffler.dummies
    if reveals is Reveals.NOISY_ORDER:
        _checks.unsupported(f"{QUESTION} needs a shuffler that reveals the multiset, not the {reveals.value}.")
    if np.all(shares == shares[0]):
        return vulnerability(protocol, adversary=Uninformed())
    _check_size(law.k)
    if dummies and law.k > 2 and float(shares.max()) < 1.0:
        return _at_most(protocol, shares)
    mixture = Mixture.of(law, protocol.n, shares)
    alone = reveals is Reveals.SENDERS or (protocol.n == 1 and not dummies) or float(shares.max()) == 1.0
    if alone or law.k == 2:
        return _exact(mixture.alone if alone else two_values(law, protocol.n, shares, dummies))
    return _of_mixture(mixture, drawn, level, rng)


def _of_mixture(mixture: Mixture, drawn: int, level: float, rng: Randomness | None) -> Bound:
    """Return the probability of a right guess for unequal frequencies of more than two values, without dummies."""
    if mixture.entries <= ENTRIES_LIMIT:
        return _exact(mixture.expected_best())
    crowd = Crowd(mixture=mixture, given=0.0)
    lower, upper = crowd.lower(), min(1.0, crowd.upper(), mixture_ends.upper_end(mixture))
    if drawn:
        return _estimate(mixture, (lower, upper), drawn, level, secure() if rng is None else rng)
    return Bound(lower=min(lower, upper), upper=upper, kind="bracket", unit=_UNIT, sources=(QIF.at("Definition 2"),))


def _at_most(protocol: Protocol, shares: Floats) -> Bound:
    """Return the bounds that hold for any mechanism."""
    _check_size(shares.size)
    bound = gain_vulnerability(protocol, gain=identity_gain(shares.size), frequencies=shares, adversary=Uninformed())
    return replace(bound, unit=_UNIT)


def _check_size(k: int) -> None:
    if k > VALUES_LIMIT:
        message = f"Unequal frequencies of k={k:,} values are too many. Merge values until k <= {VALUES_LIMIT:,}."
        raise NumericalError(message)


def _shares(frequencies: npt.ArrayLike, k: int) -> Floats:
    """Return the frequencies as floats that sum to 1."""
    try:
        shares = np.asarray(frequencies, dtype=np.float64)
    except (TypeError, ValueError):
        _checks.reject("frequencies", f"{k} numbers", "<something else>")
    if shares.shape != (k,) or not np.all(np.isfinite(shares)) or np.any(shares < 0):
        _checks.reject("frequencies", f"{k} finite numbers >= 0", f"<shape {shares.shape}>")
    if abs(float(shares.sum()) - 1) > 1e-9:
        _checks.reject("frequencies", "a distribution, with sum 1", f"<sum {float(shares.sum())!r}>")
    return np.asarray(shares / shares.sum())


def _exact(value: float) -> Bound:
    return Bound.exact(min(1.0, value), unit=_UNIT, sources=(QIF.at("Definition 2"),))


def _estimate(mixture: Mixture, ends: tuple[float, float], samples: int, confidence: float, rng: Randomness) -> Bound:
    """Return the interval of f_1 + E max_x (Z_x - Z_1), simulated; the truncated excess is bounded and added."""
    first = int(np.argmax(mixture.frequencies))
    generator = np.random.Generator(np.random.Philox(key=rng.words(2)))
    steps = (mixture.posteriors - mixture.posteriors[first]) / mixture.n
    level, cut = mixture_ends.beyond(mixture)
    block, excess = max(1, _BLOCK // mixture.reports.size), np.empty(samples)
    for start in range(0, samples, block):
        size = min(block, samples - start)
        counts = generator.multinomial(mixture.n, mixture.reports, size=size)
        excess[start : start + size] = np.minimum((counts @ steps.T).max(axis=1), level)
    mean = float(mixture.frequencies[first] + excess.mean())
    # Each side gets half of the error probability; Theorem 4 itself is one-sided.
    logarithm, many = math.log(4 / (1 - confidence)), max(samples, 2)
    variance = float(excess.var()) * many / (many - 1)
    half = math.sqrt(2 * variance * logarithm / many) + 7 * level * logarithm / (3 * (many - 1))
    lower, upper = max(ends[0], mean - half), min(ends[1], mean + half + cut)
    return Bound(
        # With the probability 1 - confidence the interval may miss the bracket altogether; the bracket holds.
        lower=min(lower, ends[1]),
        upper=max(upper, ends[0]),
        kind="estimate",
        unit=_UNIT,
        sources=(QIF.at("Definition 2"), MAURER),
        confidence=confidence,
    )
