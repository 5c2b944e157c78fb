"""`MixedProtocol`: people with different randomizers whose reports are shuffled together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, NoReturn

from hushuffle import _checks
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.mechanisms.shufflers import Reveals, Shuffler

Part = tuple[int, Mechanism]
"""A group: the number of its people, and the randomizer on the device of each of them."""


@dataclass(frozen=True, kw_only=True)
class MixedProtocol(_checks.ByName):
    """Groups of people, each with a randomizer of its own, and one shuffler for all reports.

    For example, people may choose their own epsilon. The group of each person is public and must not depend on any
    person's value. All randomizers must have the same set of possible reports, or a report would reveal the group. A
    central guarantee (`hushuffle.dp`) holds for every person; that of `member(i)` holds for the people of group i.

    Args:
        groups: up to 16 pairs (number of people, randomizer). A group may be empty, but at least one group has people.
        shuffler: the shuffler that separates reports from their senders. Its dummies are drawn from the privacy
            blanket, which must be the same distribution for all randomizers.
        group: number of the group (from 0) for whose people guarantees are computed; None: for all people.

    Raises:
        InvalidInputError: no people, `groups` is invalid, the sets of reports differ, or no group has number `group`.

    Source: docs/theory/pool.md, Corollary 7.

    >>> import hushuffle as hs
    >>> cautious, open_ = hs.RandomizedResponse(k=5, epsilon=1.0), hs.RandomizedResponse(k=5, epsilon=4.0)
    >>> crowd = hs.MixedProtocol(groups=[(9000, cautious), (1000, open_)], shuffler=hs.UniformShuffle())
    >>> print(hs.dp.epsilon(crowd, delta=1e-6))
    0.1298 to 0.1300 nats (certified bracket)
    >>> print(hs.dp.epsilon(crowd.member(0), delta=1e-6))
    0.03301 to 0.03303 nats (certified bracket)
    """

    groups: Sequence[Part]
    shuffler: Shuffler
    group: int | None = None
    shared: ClassVar[None] = None

    def __post_init__(self) -> None:
        groups = _pairs(self.groups)
        if not isinstance(self.shuffler, Shuffler):
            _checks.reject("shuffler", "a Shuffler", repr(self.shuffler), "For example UniformShuffle().")
        object.__setattr__(self, "groups", groups)
        if self.n == 0:
            _checks.reject("groups", "groups with at least one person in total", "<no person>")
        first = groups[0][1].layout
        for place, (_, randomizer) in enumerate(groups):
            if randomizer.layout != first:
                rule = "groups whose randomizers share one set of reports, or a report would reveal its group"
                hint = f"The reports of group 0 are {_told(groups[0][1])}."
                _checks.reject("groups", rule, f"<group {place}: {_told(randomizer)}>", hint)
            object.__setattr__(self, "shuffler", self.shuffler.fitted(n=self.n, values=randomizer.inputs))
        if self.group is not None:
            group = _checks.integer("group", self.group, low=0, high=len(groups) - 1)
            if groups[group][0] == 0:
                _checks.reject("group", "a group with people", group)
            object.__setattr__(self, "group", group)

    @property
    def n(self) -> int:
        """Number of people in all groups."""
        return sum(count for count, _ in self.groups)

    def member(self, group: int) -> MixedProtocol:
        """Return the same collection, with guarantees computed for the people of this group (numbered from 0).

        Raises:
            InvalidInputError: no group has this number, or the group is empty.
        """
        return replace(self, group=_checks.integer("group", group, low=0, high=len(self.groups) - 1))

    @property
    def parts(self) -> tuple[Part, ...]:
        """The groups that are not empty; groups with the same randomizer are joined."""
        merged: list[Part] = []
        for count, randomizer in self.groups:
            place = next((place for place, (_, other) in enumerate(merged) if other == randomizer), None)
            if place is not None:
                merged[place] = merged[place][0] + count, randomizer
            elif count:
                merged.append((count, randomizer))
        return tuple(merged)

    @property
    def targets(self) -> tuple[int, ...]:
        """Indices of the `parts` for whose people guarantees are computed."""
        if self.group is None:
            return tuple(range(len(self.parts)))
        return tuple(place for place, (_, other) in enumerate(self.parts) if other == self.groups[self.group][1])

    @property
    def reveals(self) -> Reveals:
        """What the release reveals about the reports."""
        return self.shuffler.reveals

    def with_dummies(self, dummies: int) -> MixedProtocol:
        """Return the protocol with the random number of dummies fixed to `dummies`.

        Raises:
            InvalidInputError: the shuffler never adds this number of dummies.
        """
        return replace(self, shuffler=self.shuffler.with_dummies(dummies))

    @property
    def randomizer(self) -> NoReturn:
        """Raise an error, since several groups have no common randomizer.

        Raises:
            UnsupportedProtocolError: always; analyses of a single randomizer do not cover several.
        """
        _checks.unsupported(
            "Only dp.epsilon, dp.delta, dp.compose, dp.compose_delta, dp.parallel, dp.profile, dp.to_pld and the "
            "estimates of frequencies accept people with different randomizers, with one report per person. For other "
            "functions, use one Protocol per randomizer."
        )

    def describe(self) -> str:
        """Return the deployment in one sentence."""
        parts = "; ".join(f"{count:,} people: {randomizer.describe()}" for count, randomizer in self.groups)
        return f"{parts}; {self.shuffler.describe()}."


MOST_GROUPS: Final = 16
_SHOWN: Final = 3
"""Largest number of columns of a report that an error message lists."""


def _pairs(groups: Sequence[Part]) -> tuple[Part, ...]:
    rule, hint = "pairs (number of people, randomizer)", "For example [(900, RandomizedResponse(k=2, epsilon=1.0))]."
    if not isinstance(groups, Sequence) or isinstance(groups, str):
        _checks.reject("groups", rule, f"<{type(groups).__name__}>", hint)
    if not 1 <= len(groups) <= MOST_GROUPS:
        _checks.reject("groups", f"1 to {MOST_GROUPS} {rule}", f"<{len(groups)} groups>", hint)
    parts = []
    for place, pair in enumerate(groups):
        if not isinstance(pair, tuple | list) or len(pair) != 2 or not isinstance(pair[1], Mechanism):
            _checks.reject("groups", rule, f"<group {place}: {type(pair).__name__}>", hint)
        parts.append((_checks.integer(f"groups[{place}][0]", pair[0], low=0), pair[1]))
    return tuple(parts)


def _told(randomizer: Mechanism) -> str:
    limits = randomizer.layout.limits
    size = " x ".join(f"{limit:,}" for limit in limits) if len(limits) <= _SHOWN else f"{len(limits):,} columns of"
    return f"{type(randomizer).__name__} with {size} reports"
