"""Convert rounds of collection to privacy loss distributions of the library dp-accounting, and back."""

from __future__ import annotations

import importlib
import math
from typing import Any, Final, TypeAlias

import numpy as np

from hushuffle import _checks
from hushuffle.curves.pairs.dominating import ImportedCurve, attained_laws, dominating_law, typical_loss
from hushuffle.errors import MissingDependencyError
from hushuffle.numerics.loss_sum import LossLattice
from hushuffle.questions.dp.central import Round
from hushuffle.questions.dp.composition import Rounds, curves_of

Release: TypeAlias = ImportedCurve
"""A mechanism given by its privacy loss distribution, usable as a round in `dp.compose` and `dp.profile`."""

_MODULE: Final = "dp_accounting.pld.privacy_loss_distribution"


def to_pld(rounds: Round | Rounds, *, interval: float = 1e-4, optimistic: bool = False, delta: float = 1e-6) -> Any:
    """Return the composition of all rounds as a `PrivacyLossDistribution` of dp-accounting.

    Relation: replace one person's values. Mechanisms composed with it must use the same relation (a Gaussian sum of
    values in [0, 1] then has sensitivity 1). The delta of the pessimistic distribution is at least the true delta at
    every epsilon, in both directions. The optimistic distribution is that of one pair of neighbouring datasets, so
    its delta is at most the true one. Each statement holds up to the floating-point error of dp-accounting.

    Args:
        rounds: a protocol, or a list of protocols or pairs (protocol, times), as for `dp.compose`.
        interval: spacing of the losses (nats). dp-accounting composes only distributions of equal spacing. It should
            be at most a tenth of the typical loss of a round.
        optimistic: True returns the optimistic (lower) distribution instead of the pessimistic one.
        delta: in (0, 0.5), near the delta of the final guarantee: it determines the range of the losses. The
            pessimistic distribution has a mass of about delta/10**6 at infinity.

    Raises:
        InvalidInputError: no rounds, times < 1, or an argument out of range.
        UnsupportedProtocolError: no analysis for a randomizer and shuffler, or a round without any noise.
        MissingDependencyError: dp-accounting is not installed.
        NumericalError: the losses need too many multiples of the interval.

    Source: docs/theory/curves.md, Lemma 6.

    >>> import hushuffle as hs
    >>> local = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=0.5), shuffler=hs.NoShuffle(), n=1)
    >>> round(hs.dp.to_pld([(local, 3)]).get_epsilon_for_delta(1e-2), 4)
    1.4577
    """
    try:
        library = importlib.import_module(_MODULE)
    except ImportError as missing:
        message = "Privacy loss distributions need dp-accounting. Install it with: pip install 'hushuffle[accounting]'"
        raise MissingDependencyError(message) from missing
    step, level = _checks.positive("interval", interval), _checks.probability("delta", delta, low_open=True)
    if level >= 0.5:
        _checks.reject("delta", "in (0, 0.5)", level)
    laws = curves_of(rounds)
    if any(math.isinf(typical_loss(law)) for law, _ in laws):
        _checks.unsupported(
            "The release of a round shows for certain which of two datasets it comes from: its epsilon is infinite at "
            "every delta, and there is no privacy loss distribution to export. Add noise, or leave the round out."
        )
    if optimistic:
        first, second = attained_laws(laws, step=step, delta=level)
        return library.PrivacyLossDistribution.create_from_rounded_probability(
            _table(first),
            0.0,
            step,
            pessimistic_estimate=False,
            rounded_probability_mass_function_add=_table(second),
            infinity_mass_add=0.0,
            symmetric=False,
        )
    law = dominating_law(laws, step=step, negligible=1e-6 * level)
    return library.PrivacyLossDistribution.create_from_rounded_probability(
        _table(law), min(law.infinity, 1.0), step, pessimistic_estimate=True
    )


def from_pld(pld: Any) -> Release:
    """Return a pessimistic `PrivacyLossDistribution` of dp-accounting as a round for `dp.compose` and `dp.profile`.

    Upper bounds of a composition with this round are as tight as the distribution; lower bounds use only the other
    rounds. The distribution must have the relation of the other rounds: replace one person's value.

    Raises:
        InvalidInputError: `pld` is not a `PrivacyLossDistribution`, or it is optimistic, which gives no guarantee.

    Source: Zhu, Dong, Wang 2022, Theorem 10.

    >>> import hushuffle as hs
    >>> from dp_accounting.pld import privacy_loss_distribution
    >>> noisy = hs.dp.from_pld(privacy_loss_distribution.from_laplace_mechanism(2.0))
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.UniformShuffle(), n=1000)
    >>> print(hs.dp.compose([survey, noisy], delta=1e-6))
    0.1266 to 0.6236 nats (certified bracket)
    """
    try:
        laws = [pmf.to_dense_pmf() for pmf in (pld._pmf_remove, pld._pmf_add)]  # noqa: SLF001 - no public access
        pessimistic = all(law._pessimistic_estimate for law in laws)  # noqa: SLF001
        directions = tuple(
            LossLattice(
                step=float(law._discretization),  # noqa: SLF001
                first=int(law._lower_loss),  # noqa: SLF001
                mass=np.maximum(np.asarray(law._probs, dtype=np.float64), 0.0),  # noqa: SLF001
                infinity=max(float(law._infinity_mass), 0.0),  # noqa: SLF001
            )
            for law in laws
        )
    except AttributeError:
        _checks.reject("pld", "a PrivacyLossDistribution of dp-accounting", f"<{type(pld).__name__}>")
    if not pessimistic:
        hint = "Make it with pessimistic_estimate=True."
        _checks.reject("pld", "a pessimistic distribution", "<optimistic>", hint)
    return Release(directions=directions)


def _table(law: LossLattice) -> dict[int, float]:
    return {law.first + place: float(law.mass[place]) for place in np.flatnonzero(law.mass > 0).tolist()}
