"""Choose which views of columns to release, and with how many dummies, for wanted answers at a given epsilon."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from typing import Final

from hushuffle import _checks
from hushuffle.errors import InvalidInputError, NumericalError
from hushuffle.estimation.column_views import planned_people
from hushuffle.estimation.contacts import Frequencies, planned_frequencies
from hushuffle.estimation.reach import Reach
from hushuffle.mechanisms.column_views import ColumnView, ColumnViews
from hushuffle.mechanisms.shufflers.dummy_law import DummyLaw, four_digits, gaussian_center, laplace_center
from hushuffle.model import Bound
from hushuffle.numerics.normal_pair import shift_between
from hushuffle.questions.bloom.views import views_epsilon

Chosen = tuple[int, ...]
_WIDEST: Final = 16
"""Largest number of publishers whose bit patterns are released."""

_PAIR: Final = 2
_STEPS: Final = 64
"""Number of divisions of the noise of pairs between the counts of one publisher and those of two."""

_ATTEMPTS: Final = 6
_CLOSE: Final = 0.98
_MARGIN: Final = 2e-4
TAIL: Final = 40.0
"""The dummies of a count are cut where delta/40, shared by all changed counts, remains."""

_NONE: Final = DummyLaw.of({0: 1.0})


@dataclass(frozen=True, kw_only=True)
class ViewPlan:
    """Views of columns with the certified epsilon of their release, and the standard error of each answer.

    `answers` are the assumed true numbers with standard errors, unions before overlaps; `wanted` are the wanted errors
    in the same order, `wanted_contacts` that of `contacts`. `design.dummies` is the mean number of dummies.
    """

    design: ColumnViews
    epsilon: Bound
    delta: float
    answers: tuple[Reach, ...]
    wanted: tuple[float, ...]
    contacts: Frequencies | None = None
    wanted_contacts: float = math.inf

    @property
    def met(self) -> bool:
        """Whether every standard error is at most the wanted one."""
        people = all(answer.standard_error <= error for answer, error in zip(self.answers, self.wanted, strict=True))
        return people and (self.contacts is None or bool(self.contacts.standard_errors.max() <= self.wanted_contacts))


@dataclass(frozen=True)
class _Wish:
    """A view without a distribution yet, and the largest standard deviation of each of its counts.

    `first` is that of the number of columns without any entry, or of each publisher's for "pairs" (None: `deviation`).
    """

    publishers: Chosen
    shows: str
    most: int | None
    deviation: float
    first: float | None = None

    @property
    def moved(self) -> tuple[float, ...]:
        """The standard deviations of the counts that change if one column changes, in the worst case."""
        first = self.deviation if self.first is None else self.first
        if self.shows == "pairs":
            width = len(self.publishers)
            changes = ((first,) * bits + (self.deviation,) * bits * (width - bits) for bits in range(1, width + 1))
            return max(changes, key=lambda changed: sum(1 / deviation**2 for deviation in changed))
        return (self.deviation,) if self.shows == "union" else (self.deviation, min(first, self.deviation))

    def view(self, law: Callable[[float], DummyLaw]) -> ColumnView:
        own = {} if self.first is None else {"single" if self.shows == "pairs" else "empty": law(self.first)}
        return ColumnView(
            publishers=self.publishers,
            shows=self.shows,  # type: ignore[arg-type]
            most=self.most,
            each=law(self.deviation),
            **own,
        )


def plan_views(
    *,
    publishers: int,
    columns: int,
    reach: Callable[[Chosen], float],
    epsilon: float,
    delta: float,
    unions: Mapping[Chosen, float],
    overlaps: Mapping[Chosen, float] | None = None,
    contacts: Sequence[float] = (),
    contacts_error: float = math.inf,
    hashes: int = 1,
) -> ViewPlan:
    """Return views that answer all questions with the smallest errors, in the ratio of the wanted errors.

    A union is answered by its own count, by the bit patterns of its publishers (which answer many unions) or, if it has
    two publishers, by the view "pairs". For each number i, the search releases the i unions with the smallest wanted
    errors as counts and the others as bit patterns, with discrete Laplace or discrete Gaussian dummies, and takes the
    best. The count of empty columns of bit patterns may have less noise than the others. Then epsilon is certified. The
    whole epsilon is used.

    Args:
        publishers: number K of publishers, 1 to 20.
        columns: number m of columns.
        reach: function from publishers to the assumed number of people in the union of their audiences, for example
            `hushuffle.estimation.column_views.assumed_reach`. Errors grow with this number: do not assume too few.
        epsilon: central epsilon in nats, for one person added or removed.
        delta: in (0, 1).
        unions: wanted standard error (people) of each union of publishers, for example {(0, 1, 2): 1000.0}.
        overlaps: the same for overlaps; an overlap needs the unions of all its parts.
        contacts: assumed numbers of people with 1, 2, ... contacts (last: that many or more), if these are wanted.
        contacts_error: wanted standard error (people) of each of these numbers.
        hashes: number of hash functions.

    Raises:
        InvalidInputError: an argument is out of range, or hash collisions alone exceed a wanted error.
        NumericalError: epsilon needs more noise than a distribution of dummies can have.

    Source: docs/theory/histograms.md, Corollary 10.

    >>> plan = plan_views(
    ...     publishers=3, columns=10**6, reach=lambda _: 5e5, epsilon=0.05, delta=1e-9, unions={(0, 1, 2): 600.0}
    ... )
    >>> print(plan.epsilon, plan.design.views[0].each, round(plan.answers[0].standard_error), sep=" | ")
    0.04998 nats (certified bracket) | DummyLaw.discrete_laplace(center=490, scale=20.01) | 388
    """
    target = _checks.positive("epsilon", epsilon)
    level = _checks.probability("delta", delta, low_open=True, high_open=True)
    joint = dict(overlaps or {})
    if not unions and not joint and not contacts:
        _checks.reject("unions", "at least one union, overlap or frequency", "none")
    needed = {*unions, *(part for chosen in joint for part in _parts(chosen))}
    plain = [ColumnView(publishers=chosen, each=_NONE) for chosen in sorted(needed)]
    if contacts:
        everyone = tuple(range(publishers))
        plain.append(ColumnView(publishers=everyone, shows="contacts", most=len(contacts), each=_NONE))
    exact = ColumnViews(publishers=publishers, columns=columns, views=tuple(plain), hashes=hashes)
    deviations = _deviations(exact, reach, unions, joint)
    fixed = [_contacts_wish(exact, contacts, contacts_error)] if contacts else []
    options = sorted(
        (each for wishes in _structures(deviations) for each in _options(fixed + wishes, target / hashes, level)),
        key=lambda option: option[0],
    )
    for factor, wishes, gaussian in options[:4]:
        try:
            design, bound = _certified(exact, wishes, factor, target, level, gaussian=gaussian)
        except InvalidInputError:  # a distribution has more numbers than a table can have
            continue
        questions = [(kind, chosen) for kind, group in (("reach", unions), ("overlap", joint)) for chosen in group]
        answers = [planned_people(design, kind, reach=reach, publishers=chosen) for kind, chosen in questions]  # type: ignore[arg-type]
        return ViewPlan(
            design=design,
            epsilon=bound,
            delta=level,
            answers=tuple(answers),
            wanted=(*unions.values(), *joint.values()),
            contacts=planned_frequencies(design, contacts) if contacts else None,
            wanted_contacts=contacts_error,
        )
    widest = max(wish.deviation for wish in options[0][1]) * options[0][0]
    message = (
        f"Epsilon = {target:g} needs a standard deviation of {widest:,.0f} per count, more than a distribution of "
        "dummies can have. Ask for fewer answers, or allow a larger epsilon."
    )
    raise NumericalError(message)


def _parts(chosen: Chosen) -> Iterator[Chosen]:
    for size in range(1, len(chosen) + 1):
        yield from combinations(sorted(chosen), size)


def _deviations(
    exact: ColumnViews,
    reach: Callable[[Chosen], float],
    unions: Mapping[Chosen, float],
    overlaps: Mapping[Chosen, float],
) -> dict[Chosen, float]:
    """Return for each union the largest standard deviation of its number of empty columns."""
    m, h = exact.columns, exact.hashes
    largest: dict[Chosen, float] = {}
    for kind, wanted in (("reach", unions), ("overlap", overlaps)):
        for chosen, error in wanted.items():
            collisions = planned_people(exact, kind, reach=reach, publishers=chosen).standard_error  # type: ignore[arg-type]
            room = _room(chosen, error, collisions)
            parts = [tuple(sorted(chosen))] if kind == "reach" else list(_parts(chosen))
            for part in parts:
                slope = m / h * math.exp(h * reach(part) / m) / m
                share = room / math.sqrt(len(parts)) / slope
                largest[part] = min(largest.get(part, math.inf), share)
    return largest


def _room(what: object, error: float, collisions: float) -> float:
    if not error > collisions:
        hint = "Use more columns."
        _checks.reject(
            "the standard error", f"above {collisions:,.1f} for {what}, that of hash collisions", error, hint
        )
    return math.sqrt(error**2 - collisions**2)


def _contacts_wish(exact: ColumnViews, people: Sequence[float], wanted: float) -> _Wish:
    view = exact.views[-1]
    noisy = ColumnView(publishers=view.publishers, shows="contacts", most=view.most, each=DummyLaw.of({0: 0.5, 2: 0.5}))
    least = planned_frequencies(exact, people).standard_errors
    more = planned_frequencies(
        ColumnViews(publishers=exact.publishers, columns=exact.columns, views=(noisy,), hashes=exact.hashes), people
    ).standard_errors
    deviation = min(
        _room("contacts", wanted, low) / math.sqrt(max(high**2 - low**2, 1e-12))
        for low, high in zip(least.tolist(), more.tolist(), strict=True)
    )
    return _Wish(view.publishers, "contacts", view.most, deviation)


def _structures(deviations: Mapping[Chosen, float]) -> Iterator[list[_Wish]]:
    """Yield lists of views: the most demanding unions by themselves, all others from the bit patterns of theirs."""
    own = {chosen: _Wish(chosen, "union", None, deviation) for chosen, deviation in deviations.items()}
    yield list(own.values())
    small = {chosen: deviation for chosen, deviation in deviations.items() if len(chosen) <= _PAIR}
    if any(len(chosen) == _PAIR for chosen in small):
        yield [*(wish for chosen, wish in own.items() if chosen not in small), _pairs(small)]
    for first in range(len(own)):
        together = sorted({each for chosen in _demanding(deviations)[first:] for each in chosen})
        if len(together) <= _WIDEST:
            rest = _demanding(deviations)[first:]
            size = len(together)
            cell = min(deviations[chosen] / _spread(size, len(chosen)) for chosen in rest)
            patterns, apart = _Wish(tuple(together), "patterns", None, cell), _demanding(deviations)[:first]
            yield [*(own[chosen] for chosen in apart), patterns]
            if patterns.publishers in apart:  # their union follows from the number of columns without any entry
                others = [own[chosen] for chosen in apart if chosen != patterns.publishers]
                yield [*others, replace(patterns, first=deviations[patterns.publishers])]


def _pairs(deviations: Mapping[Chosen, float]) -> _Wish:
    """Return the cheapest noise of the counts of one publisher, and of exactly one of two, for these unions.

    The union of two has a quarter of the variance of two counts of one publisher and of one count of two together.
    """
    publishers = tuple(sorted({each for chosen in deviations for each in chosen}))
    sizes = ([each for chosen, each in deviations.items() if len(chosen) == size] for size in (1, _PAIR))
    single, joint = (min(each, default=math.inf) for each in sizes)
    most = min(single, math.sqrt(2) * joint)
    wishes = (
        _Wish(publishers, "pairs", None, math.sqrt(4 * joint**2 - 2 * first**2), first)
        for first in (most * step / _STEPS for step in range(1, _STEPS))
    )
    return min(wishes, key=lambda wish: sum(1 / deviation**2 for deviation in wish.moved))


def _demanding(deviations: Mapping[Chosen, float]) -> list[Chosen]:
    """Return the unions by the standard deviation per bit pattern that they allow, the smallest first."""
    size = len({each for chosen in deviations for each in chosen})
    return sorted(deviations, key=lambda chosen: deviations[chosen] / _spread(size, len(chosen)))


def _spread(size: int, chosen: int) -> float:
    """Return the standard deviation of the columns without `chosen` of `size` publishers, in units of a pattern's."""
    empty = 2.0 ** (size - chosen)
    return math.sqrt(empty * (1 - 2.0**-chosen))


def _options(wishes: list[_Wish], epsilon: float, delta: float) -> Iterator[tuple[float, list[_Wish], bool]]:
    """Yield the factor on all standard deviations at which epsilon is met, about, for Laplace and Gaussian dummies."""
    plain = sum(1 / deviation for wish in wishes for deviation in wish.moved)
    yield math.sqrt(2) * plain / epsilon, wishes, False
    squares = math.sqrt(sum(1 / deviation**2 for wish in wishes for deviation in wish.moved))
    yield squares / float(shift_between(epsilon, delta)), wishes, True


def _certified(
    exact: ColumnViews, wishes: list[_Wish], factor: float, epsilon: float, delta: float, *, gaussian: bool
) -> tuple[ColumnViews, Bound]:
    """Return a design and its certified epsilon, at most `epsilon` and near it."""
    best, scale = None, factor * (1 + _MARGIN)
    changed = sum(len(wish.moved) for wish in wishes)
    for _ in range(_ATTEMPTS):

        def law(deviation: float, scale: float = scale) -> DummyLaw:
            return _law(deviation * scale, delta / TAIL / changed, gaussian=gaussian)

        views = tuple(wish.view(law) for wish in wishes)
        design = ColumnViews(publishers=exact.publishers, columns=exact.columns, views=views, hashes=exact.hashes)
        bound = views_epsilon(design, delta=delta)
        if bound.upper <= epsilon and (best is None or bound.upper > best[1].upper):
            best = design, bound
        if best is not None and best[1].upper >= _CLOSE * epsilon:
            break
        scale *= min(max(bound.upper / epsilon, 0.1), 10.0) * (1 + _MARGIN)
    if best is None:
        message = f"No number of dummies was certified to meet epsilon = {epsilon:g}. Allow a larger delta."
        raise NumericalError(message)
    return best


@lru_cache(maxsize=64)
def _law(deviation: float, tail: float, *, gaussian: bool) -> DummyLaw:
    """Return a distribution of dummies with at least this standard deviation, cut where about `tail` remains."""
    if gaussian:
        sigma = four_digits(deviation)
        return DummyLaw.discrete_gaussian(center=gaussian_center(sigma, tail), sigma=sigma)
    scale = four_digits(deviation / math.sqrt(2))
    return DummyLaw.discrete_laplace(center=laplace_center(scale, tail), scale=scale)
