"""Reports that further messages hide, of people or of a shuffler: as few messages as meet the targets of privacy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from hushuffle.assessment.candidates import APART, Candidate, Miss, Search, Wishes, rounded
from hushuffle.assessment.messages import with_messages
from hushuffle.assessment.trials import error_of
from hushuffle.errors import SpecificationError
from hushuffle.mechanisms.shufflers import UniformShuffle
from hushuffle.mechanisms.shufflers._per_value import MOST
from hushuffle.mechanisms.shufflers.blanket_messages import MOST_TRIALS
from hushuffle.mechanisms.shufflers.dummy_law import LARGEST
from hushuffle.model import number
from hushuffle.numerics.roots import farthest, halved
from hushuffle.questions.dp.calibration import narrowed
from hushuffle.specification import Specification

_RARE: Final = 1e-15
"""Coins that show heads less often are not tried."""

_SOME: Final = 1e-9
"""A probability that goes with any number of people and values, before one is chosen."""

_SENT: Final = {"blanket-messages": "blanket messages", "fakes-per-value": "fakes of each value"}
_READABLE: Final = "Reports are the answers: there is no local epsilon if the shuffler fails."
_NO_MESSAGES: Final = "Further messages are not allowed (most_messages)."
_STEPS: Final = 30

_MANY: Final = 10_000
"""From so many values on hashed reports are looked at."""

_FEW: Final = 256
"""Buckets with which it is first found how many messages each takes."""

_SPARE: Final = 0.01
"""More buckets are taken than should do by this share, and fewer than the limit allows."""


@dataclass(frozen=True, kw_only=True)
class MessageSearch(Search):
    """True reports, or `noisy` ones with the local epsilon that is allowed, and further messages.

    Of people who throw `trials` coins the fewest coins that hide enough at p = 1 are taken, then the smallest p of so
    many coins: more coins, and likelier heads, hide more (docs/theory/histograms.md, Corollary 3). Where nothing is
    asked of the release, as many messages as accuracy and limits allow.
    """

    noisy: bool = False

    @cached_property
    def specification(self) -> Specification:
        """The specification, with some noise or none, and some messages."""
        return self.wishes.specification(self._randomizer(1.0 if self.noisy else math.inf), self.shuffler)

    @property
    def mechanism(self) -> str:
        """Its kind in a few words."""
        return super().mechanism if self.noisy else "true reports"

    def behind_of(self, shuffler: Mapping[str, Any]) -> str:
        """Return the messages in a few words; how many there are, where `shuffler` says it."""
        kind = shuffler["kind"]
        if kind == "scrambler":
            return super().behind_of(shuffler)
        if shuffler is self.shuffler:
            return _SENT[kind]
        own = self.protocol(self._local, shuffler).shuffler.own_messages
        return f"{_SENT[kind]}, {number(own, up=True)} of each person besides"

    @property
    def _local(self) -> float:
        return self._most_local() if self.noisy else math.inf

    @property
    def _largest(self) -> tuple[int, float]:
        """The largest number of coins (dummies, of a scrambler), and the largest probability, that are tried."""
        kind = self.shuffler["kind"]
        if kind == "scrambler":
            return self.wishes.most_dummies, 1.0
        if kind == "fakes-per-value":
            return 1, min(0.5, rounded(MOST / (self.wishes.n * self.wishes.k), up=False))
        return max(1, min(MOST_TRIALS, LARGEST // self.wishes.n)), 1.0

    @property
    def _exposed(self) -> str:
        most, (coins, p) = "", self._largest
        if self.shuffler["kind"] != "scrambler":
            own = self.protocol(self._local, self._table(coins, p)).shuffler.own_messages
            most = f", with {own:,g} messages of each person besides, the most that are tried"
        return f"Not private enough{most or f', with {coins:,} dummies, the most that are tried'}."

    def _table(self, coins: int, p: float) -> dict[str, Any]:
        kind, honest = self.shuffler["kind"], self.wishes.honest
        if kind == "scrambler":
            return {"kind": kind, "dummies": coins}
        table = {"kind": kind, "p": p, **({"trials": coins} if coins > 1 else {})}
        return table if honest == 1 else {**table, "honest": honest}

    def _found(self) -> Candidate | Miss:
        asked = self.specification.targets
        if not self.noisy and asked.local_epsilon is not None:
            return Miss(search=self, reason=_READABLE)
        if self.noisy and self.wishes.most_messages <= 1:
            return Miss(search=self, reason=_NO_MESSAGES)
        if self.noisy and self._short(replace(self.protocol(self._local), shuffler=UniformShuffle())) <= 0:
            return Miss(search=self, reason=f"With local epsilon {self._local:g} no further messages are needed.")
        hidden = asked.epsilon is not None or (asked.guessing is not None and self.exposure.total == 1)
        table = self._fewest() if hidden else self._most()
        if table is None:
            return Miss(search=self, reason=self._exposed if hidden else _NO_MESSAGES)
        return self._judged(self._local, table)

    def _fewest(self) -> dict[str, Any] | None:
        """Return the fewest messages that meet the targets of privacy, rounded up; None: none do."""
        local, (most, top) = self._local, self._largest

        def short(coins: int, p: float) -> float:
            return self._short(self.protocol(local, self._table(coins, p)))

        coins, few = 1, 0
        while short(coins, top) > 0:
            if coins >= most:
                return None
            few, coins = coins, min(2 * coins, most)
        coins = farthest(lambda tried: short(tried, top) <= 0, good=coins, bad=few)
        if self.shuffler["kind"] == "scrambler":
            return self._table(coins, top)
        good, bad = top, top / 4
        while bad > _RARE and short(coins, bad) <= 0:
            good, bad = bad, bad / 4
        if bad > _RARE:
            good, _ = narrowed(lambda p: max(short(coins, p), -1e6), good, bad, whole=False)
        return self._table(coins, min(rounded(good, up=True), top))

    def _most(self) -> dict[str, Any] | None:
        """Return the most messages that accuracy and limits allow, rounded down; None: not one."""
        local, wanted, allowed = self._local, self.specification.targets.standard_error, self.wishes
        own = self.shuffler["kind"] in _SENT
        beginning = self.protocol(local, self._table(*self._largest))
        limit = min(allowed.most_messages, allowed.most_bits / beginning.randomizer.layout.bits) - 1
        most = min(limit, beginning.shuffler.own_messages) if own else float(allowed.most_dummies)
        if most <= 0:
            return None

        def table(messages: float) -> dict[str, Any]:
            if not own:
                return self._table(int(messages), 1.0)
            messages = min(messages, most)  # a logarithm may round it up
            tossed = with_messages(self.protocol(local), messages).shuffler.tossed
            assert tossed is not None
            coins = max(1, math.ceil(messages)) if self.shuffler["kind"] == "blanket-messages" else 1
            return self._table(coins, rounded(tossed[1], up=False))

        def accurate(logarithm: float) -> bool:
            return wanted is None or error_of(self.protocol(local, table(math.exp(logarithm)))) <= wanted

        least, logarithm = math.log(_RARE), math.log(most)
        if accurate(logarithm):
            return table(most)
        # Where not even a few messages are accurate enough, what is judged says by how much.
        return table(math.exp(halved(accurate, good=least, bad=logarithm, times=_STEPS)) if accurate(least) else most)


@dataclass(frozen=True, kw_only=True)
class HashedSearch(MessageSearch):
    """True buckets of a fresh hash each, among blanket messages: for more values than messages can be sent for.

    About as many messages hide a bucket whatever k is, so many times as there are buckets, and others in the same
    bucket make the error larger (docs/theory/histograms.md, Theorem 9): as few buckets as are accurate enough, or as
    many as the limit of messages allows.
    """

    @property
    def mechanism(self) -> str:
        """Its kind in a few words."""
        chosen = self.beside["g"] != _FEW  # else none are, yet
        return f"true hashed reports ({self.beside['g']:,} buckets)" if chosen else "true hashed reports"

    def _found(self) -> Candidate | Miss:
        asked = self.specification.targets
        if asked.local_epsilon is not None:
            return Miss(search=self, reason=_READABLE)
        if self.wishes.most_messages <= 1:
            return Miss(search=self, reason=_NO_MESSAGES)
        table = self._fewest()
        if table is None:
            return Miss(search=self, reason=self._exposed)
        each = self.protocol(math.inf, table).shuffler.own_messages / _FEW  # messages of a person, for each bucket
        most = int(min(self.wishes.k, (self.wishes.most_messages - 1) / each * (1 - _SPARE)))
        return self.of(max(self._fewest_buckets(each, most), 2)).hidden()

    def of(self, buckets: int) -> HashedSearch:
        """Return the same with so many buckets."""
        return replace(self, beside={"g": buckets})

    def hidden(self) -> Candidate | Miss:
        """Return these buckets among as few messages as hide them."""
        table = self._fewest()
        return Miss(search=self, reason=self._exposed) if table is None else self._judged(math.inf, table)

    def error_with(self, each: float) -> float:
        """Return the standard error with so many messages of a person for each bucket."""
        messages = each * self.beside["g"]
        coins = max(1, math.ceil(messages))
        return error_of(self.protocol(math.inf, self._table(coins, messages / coins)))

    def _fewest_buckets(self, each: float, most: int) -> int:
        """Return how few buckets are accurate enough, up to `most`."""
        wanted = self.specification.targets.standard_error
        if wanted is None or most <= 2:
            return most

        def accurate(logarithm: float) -> bool:
            return self.of(round(math.exp(logarithm))).error_with(each) <= wanted

        found = halved(accurate, good=math.log(most), bad=math.log(2), times=_STEPS)
        return min(math.ceil(math.exp(found) * (1 + _SPARE)), most)


def message_searches(wishes: Wishes) -> tuple[list[Search], list[Miss]]:
    """Return one search for each kind of further messages, and why others do not go with what is asked."""
    made: list[Search] = []
    misfits: list[Miss] = []
    for search in _searches(wishes):
        try:
            search.specification  # noqa: B018 - it is parsed
        except SpecificationError as error:
            reason = " ".join(problem.hint or APART for problem in error.problems)
            misfits.append(Miss(search=search, reason=reason))
        else:
            made.append(search)
    return made, misfits


def _searches(wishes: Wishes) -> Iterator[MessageSearch]:
    """Yield true reports with each kind of further messages, and where a local epsilon is asked for noisy ones."""
    begun = MessageSearch(wishes=wishes, kind="randomized-response", beside={}, shuffler={})
    for kind in _SENT:
        yield replace(begun, shuffler={"kind": kind, "p": _SOME})
    if "local_epsilon" in wishes.tables["targets"]:
        yield replace(begun, shuffler={"kind": "blanket-messages", "p": _SOME}, noisy=True)
    if wishes.k >= _MANY and {"epsilon", "guessing"} & {*wishes.tables["targets"]}:
        hashed = {"kind": "blanket-messages", "p": _SOME}
        yield HashedSearch(wishes=wishes, kind="local-hashing", beside={"g": _FEW}, shuffler=hashed)
    if wishes.most_dummies:
        yield replace(begun, shuffler={"kind": "scrambler", "dummies": wishes.most_dummies})
