"""Central differential privacy: delta at a given epsilon, epsilon at a given delta, and epsilon of a given dataset."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.curves.base import PrivacyCurve, Start, in_order
from hushuffle.curves.laws.known_dataset import FAMILY, BinaryDataset, KaryDataset, KnownDataset
from hushuffle.curves.rules.count_seen import DummyMixture
from hushuffle.curves.search import privacy_curve
from hushuffle.errors import UnsupportedProtocolError
from hushuffle.mechanisms.mixed_protocol import MixedProtocol
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import Symmetric, symmetric_law
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.mechanisms.split_and_mix import SplitAndMix
from hushuffle.model import Bound, Bounds, Histogram, Kind, Witness
from hushuffle.numerics.binomial import Floats
from hushuffle.numerics.exact import times_upwards

LARGE_EPSILON = 5.0
"""Above this epsilon (nats) a guarantee is weak."""

_WIDEST: Final = 0.2
"""Largest `tolerance` of `epsilon`."""

Round: TypeAlias = Protocol | MixedProtocol | SplitAndMix | PrivacyCurve
"""A protocol, or the result of `dp.per_person` or `dp.from_pld`."""


def delta(protocol: Round, *, epsilon: float, reports_per_person: int = 1) -> Bound:
    """Return a certified bracket of the smallest delta for which the release is (epsilon, delta)-DP.

    Relation: replace one person's value, n fixed. The adversary knows all other people's values and observes the
    release. The upper bound holds for all pairs of datasets; the lower bound is attained by the pair of datasets in
    the bound's witness.

    Args:
        protocol: the collection, or the result of `dp.per_person` or `dp.from_pld`. For a `MixedProtocol`, the figure
            holds for all people, or for one group (`MixedProtocol.member`).
        epsilon: in nats, finite, >= 0.
        reports_per_person: the largest number of the n reports from one person. Neighbouring datasets replace all
            reports of one person; the number of reports of each person stays the same.

    Raises:
        InvalidInputError: epsilon or reports_per_person out of range.
        UnsupportedProtocolError: no analysis for this randomizer and shuffler.

    Source: docs/theory/two-values.md, docs/theory/blanket.md, docs/theory/datasets.md; several reports:
    docs/theory/composition.md, Theorem 8 and Lemma 9.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=2.0), shuffler=hs.UniformShuffle(), n=1000)
    >>> print(hs.dp.delta(survey, epsilon=0.2))
    1.656e-04 (certified bracket)
    """
    level = _checks.non_negative("epsilon", epsilon)
    return round_curve(protocol, reports_per_person).delta(level)


def epsilon(protocol: Round, *, delta: float, reports_per_person: int = 1, tolerance: float = 0.0) -> Bound:
    """Return a certified bracket of the smallest epsilon (nats) for which the release is (epsilon, delta)-DP.

    Relation: replace one person's value, n fixed. The adversary knows all other values and observes the release. The
    upper bound holds for all datasets, the lower bound for those in the witness. At delta = 0 the result is the pure
    guarantee, which shuffling does not improve. If a shuffler reveals a noisy order, the lower bound is that of the
    uniform shuffle and the upper bound that of no shuffle (what the order hides: `hushuffle.order`).

    Args:
        protocol: the collection, or the result of `dp.per_person` or `dp.from_pld`.
        delta: in [0, 1).
        reports_per_person: the largest number of the n reports from one person, as for `dp.delta`.
        tolerance: how wide the bracket may be, or how much wider than without, relative to its value, in [0, 0.2]. It
            stays certified; an exact result stays exact. With 0.01, most figures take a third of the time.

    Raises:
        InvalidInputError: delta, reports_per_person or tolerance out of range.
        UnsupportedProtocolError: no analysis for this randomizer and shuffler.
        NumericalError: rounding errors hide the result (never observed above delta = 1e-30).

    Source: docs/theory/two-values.md, docs/theory/blanket.md, docs/theory/datasets.md, docs/theory/pool.md; several
    reports of each person: docs/theory/composition.md, Theorem 8 and Lemma 9.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=2.0), shuffler=hs.UniformShuffle(), n=33_000)
    >>> print(hs.dp.epsilon(survey, delta=1e-6))
    0.05113 to 0.05114 nats (certified bracket)
    >>> print(hs.dp.epsilon(hs.dp.per_person(survey, reports=5), delta=1e-6))
    0.2862 to 0.2865 nats (certified bracket)
    >>> print(hs.dp.epsilon(survey, delta=1e-6, reports_per_person=5))
    0.2862 to 0.2865 nats (certified bracket)
    """
    level, share = _checks.probability("delta", delta, high_open=True), _tolerance(tolerance)
    return _bracket(round_curve(protocol, reports_per_person), level, share)


def epsilons(
    protocol: Round,
    *,
    delta: npt.ArrayLike,
    people: npt.ArrayLike | None = None,
    reports_per_person: int = 1,
    tolerance: float = 0.0,
) -> Bounds:
    """Return `epsilon` at several deltas, and for several numbers of people.

    Each figure is certified like that of `epsilon`. Both may differ by where a search ends (1e-6 of epsilon).

    Args:
        protocol: as for `epsilon`; a `Protocol` if `people` is given.
        delta: numbers in [0, 1), any shape.
        people: numbers of people in place of the protocol's n, integers >= 1; the shapes of both broadcast.
        reports_per_person: as for `epsilon`.
        tolerance: as for `epsilon`.

    Raises:
        InvalidInputError: an argument out of range, or shapes that do not broadcast.
        UnsupportedProtocolError: no analysis for this randomizer and shuffler.

    Source: as `epsilon`.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=2.0), shuffler=hs.UniformShuffle(), n=33_000)
    >>> print(hs.dp.epsilons(survey, delta=1e-6, people=[1000, 10_000, 100_000])[2])
    0.02813 to 0.02814 nats (certified bracket)
    """
    levels = array("delta", delta, lambda name, value: _checks.probability(name, value, high_open=True))
    share, sizes = _tolerance(tolerance), array("people", -1 if people is None else people, _checks.finite)
    if people is not None:
        _checks.of_type("protocol", protocol, Protocol)
        wrong = int(np.count_nonzero((sizes < 1) | (sizes != np.floor(sizes))))
        if wrong:
            _checks.reject("people", "integers >= 1", f"<{wrong} other numbers>")
    try:
        each = np.broadcast(sizes, levels)
    except ValueError:
        _checks.reject("delta, people", "arrays that broadcast", f"<shapes {levels.shape} and {sizes.shape}>")
    figures, start, last, curve = list[Bound](), Start(), math.nan, None
    for n, level in each:
        if curve is None or n != last:
            given = replace(protocol, n=int(n)) if isinstance(protocol, Protocol) and n > 0 else protocol
            curve, last = round_curve(given, reports_per_person), n
        figures.append(_bracket(curve, float(level), share, start))
    return gathered(figures, each.shape)


def gathered(figures: Sequence[Bound], shape: tuple[int, ...], unit: str = "nats") -> Bounds:
    """Return `figures` as an array of this shape."""
    lower, upper = (np.array([getattr(each, end) for each in figures]).reshape(shape) for end in ("lower", "upper"))
    kind: Kind = "exact" if all(each.kind == "exact" for each in figures) else kind_of(lower)
    sources = tuple(dict.fromkeys(source for each in figures for source in each.sources))
    return Bounds(lower=lower, upper=upper, kind=kind, unit=unit, sources=sources)


def kind_of(lower: Floats) -> Kind:
    """Return the kind of certified bounds of which some may be trivial."""
    return "bracket" if bool(np.any(lower > 0)) else "upper"


def _tolerance(given: float) -> float:
    share = _checks.non_negative("tolerance", given)
    if share > _WIDEST:
        _checks.reject("tolerance", f"at most {_WIDEST}", given)
    return share


def _bracket(curve: PrivacyCurve, level: float, share: float, start: Start | None = None) -> Bound:
    if level == 0:
        return curve.epsilon(level)
    start = Start() if start is None else start
    start.turn(curve, level)
    bound = curve.within(level, share, start.guess or None) if share else None
    if bound is None or bound.upper > bound.lower * (1 + share):
        plain = type(curve).epsilon is PrivacyCurve.epsilon
        bound = curve.near(level).searched(level, start=start) if plain else curve.epsilon(level)
    start.ratio = bound.lower / max(start.typical, 1e-300)
    return bound


def array(name: str, values: npt.ArrayLike, check: Callable[[str, float], float]) -> Floats:
    """Return `values` as an array of floats after a check of the smallest and the largest number."""
    try:
        raw = np.asarray(values)
    except ValueError:
        _checks.reject(name, "a number or an array of numbers", "<ragged>")
    if raw.dtype.kind not in "iuf":
        _checks.reject(name, "a number or an array of numbers", f"<dtype {raw.dtype}>")
    array = raw.astype(np.float64)
    if array.size:  # nan is both
        check(name, float(array.min()))
        check(name, float(array.max()))
    return array


def round_curve(given: Round, reports: int = 1) -> PrivacyCurve:
    if not isinstance(given, PrivacyCurve):
        return per_person(given, reports=reports)
    if reports != 1:
        _checks.reject("reports_per_person", "1 for what `dp.per_person` or `dp.from_pld` gives", f"{reports}")
    return given


def per_person(protocol: Protocol | MixedProtocol | SplitAndMix, *, reports: int) -> PrivacyCurve:
    """Return a round for `dp.compose` in which each person gives at most `reports` of the n reports.

    Relation: replace all reports of one person. The number of reports of each person does not depend on values.

    Args:
        protocol: the collection; its n is the number of reports.
        reports: the largest number of reports of one person, >= 1.

    Raises:
        InvalidInputError: fewer than one report.
        UnsupportedProtocolError: no analysis for this randomizer and shuffler, or for more than one report.

    Source: docs/theory/composition.md, Theorem 8 and Lemma 9.

    >>> import hushuffle as hs
    >>> trips = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=1.0), shuffler=hs.UniformShuffle(), n=33_000)
    >>> print(hs.dp.compose([(hs.dp.per_person(trips, reports=3), 12)], delta=1e-6))
    0.2039 to 0.2040 nats (certified bracket)
    """
    _checks.of_type("protocol", protocol, Protocol, MixedProtocol, SplitAndMix)
    return privacy_curve(protocol, _checks.integer("reports_per_person", reports, low=1))


def local_epsilon(protocol: Protocol | MixedProtocol | SplitAndMix, *, reports_per_person: int = 1) -> Bound:
    """Return the local epsilon (nats), which holds even if the shuffler is compromised: exact, rounded up.

    If a person sends several reports, it is the sum over these reports. For `SplitAndMix` it is infinite.

    Raises:
        InvalidInputError: fewer than one report of each person.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=5, epsilon=2.0), shuffler=hs.UniformShuffle(), n=10)
    >>> print(hs.dp.local_epsilon(survey))
    2.000 nats (exact)
    """
    _checks.of_type("protocol", protocol, Protocol, MixedProtocol, SplitAndMix)
    reports = min(_checks.integer("reports_per_person", reports_per_person, low=1), protocol.n)
    if protocol.shared is not None:
        return Bound.exact(math.inf, unit="nats")
    report = max(protocol.parts[target][1].local_epsilon for target in protocol.targets)
    return Bound.exact(times_upwards(report, reports), unit="nats")


UNIT: Final = "nats, this dataset only"
"""Unit of an epsilon of one dataset; `Guarantee` does not accept it."""


def instance(protocol: Protocol, *, histogram: Histogram, delta: float) -> Bound:
    """Return a bracket of epsilon for ONE given dataset and its neighbours. This is not a privacy guarantee.

    The result is the largest epsilon over all changes of one person's value, with all other values as in `histogram`.
    It can be far below `epsilon`, which holds for every dataset. It depends on the private data: publishing it, or
    choosing noise by it, reveals data. Its unit is "nats, this dataset only".

    Args:
        protocol: the collection: uniform shuffle (dummies allowed) or none.
        histogram: how many of the n people hold each value, shape (k,).
        delta: in (0, 1).

    Raises:
        InvalidInputError: a histogram of other than n people or k values; delta out of range.
        UnsupportedProtocolError: no analysis for this randomizer and shuffler.
        NumericalError: k >= 3 and n too large (counts over more than 2**21 cells: n of about 10**5 at k = 3),
            or delta below what rounding allows (about 1e-10).

    Source: docs/theory/datasets.md, Theorem 5.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=3, epsilon=4.0), shuffler=hs.UniformShuffle(), n=999)
    >>> print(hs.dp.instance(survey, histogram=hs.Histogram(counts=[333, 333, 333]), delta=1e-6))
    0.8924 nats, this dataset only (certified bracket)
    """
    _checks.of_type("protocol", protocol, Protocol)
    _checks.of_type("histogram", histogram, Histogram)
    level = _checks.probability("delta", delta, low_open=True, high_open=True)
    law = symmetric_law(protocol.randomizer, for_what="Epsilon of one dataset")
    people = _people(protocol, histogram, law.k)
    match protocol.reveals:
        case Reveals.SENDERS:
            return _alike(protocol, people, level)
        case Reveals.MULTISET if law.lie == 0 and (protocol.shuffler.tossed or protocol.shuffler.dummies == 0):
            return _alike(protocol, people, level)
        case Reveals.MULTISET if law.lie > 0:
            return _shuffled(protocol, law, people, level)
    message = f"Epsilon of one dataset is not available with {protocol.shuffler.describe()}, and this randomizer."
    raise UnsupportedProtocolError(message)


def _people(protocol: Protocol, histogram: Histogram, k: int) -> tuple[int, ...]:
    if histogram.k != k:
        _checks.reject("histogram", f"counts of k = {k} values", f"<{histogram.k} values>")
    if histogram.total != protocol.n:
        _checks.reject("histogram", f"counts of all n = {protocol.n} people", f"<{histogram.total} people>")
    return tuple(int(count) for count in histogram.counts)


def _alike(protocol: Protocol, people: tuple[int, ...], level: float) -> Bound:
    """The bound if reports are unshuffled or are the values: it is the same for all datasets."""
    before = next(value for value, count in enumerate(people) if count)
    others = tuple(count - (value == before) for value, count in enumerate(people))
    witness = Witness(family=FAMILY, others=others, target=(before, (before + 1) % len(people)))
    worst = epsilon(protocol, delta=level)
    return replace(worst, unit=UNIT, witness=witness)


def _shuffled(protocol: Protocol, law: Symmetric, people: tuple[int, ...], level: float) -> Bound:
    if protocol.secret is not protocol:
        _checks.unsupported("Epsilon of one dataset is not available with a share of honest people (`honest` < 1).")
    pure, drawn = protocol.randomizer.local_epsilon, protocol.shuffler.dummy_law

    def given(dummies: int) -> KnownDataset:
        if law.k == 2:
            return BinaryDataset.of(people, law, dummies, local_epsilon=pure)
        return KaryDataset.of(people, law, dummies, level, local_epsilon=pure)

    dataset = given(protocol.shuffler.dummies) if drawn is None else DummyMixture.of(drawn, given)
    bound = dataset.epsilon(level)
    upper = bound.upper
    if law.k > 3:
        with suppress(UnsupportedProtocolError):  # a bound for every dataset holds for this dataset
            upper = min(upper, epsilon(protocol, delta=level).upper)
    low = in_order(bound.lower, upper)
    return Bound(lower=low, upper=upper, kind="bracket", unit=UNIT, sources=bound.sources, witness=bound.witness)
