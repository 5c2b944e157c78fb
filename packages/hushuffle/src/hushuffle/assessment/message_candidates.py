"""Search for the fewest additional messages, of people or of a shuffler, that meet the privacy targets."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Final

from hushuffle.assessment.candidates import APART, Candidate, Miss, Search, fit, rounded
from hushuffle.assessment.messages import with_messages
from hushuffle.assessment.noise_candidates import ColumnSearch, ColumnWishes, searches
from hushuffle.assessment.trials import no_error
from hushuffle.errors import SpecificationError
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.shufflers import UniformShuffle
from hushuffle.mechanisms.shufflers.base import MOST
from hushuffle.mechanisms.shufflers.blanket_messages import MOST_TRIALS
from hushuffle.mechanisms.shufflers.dummy_law import LARGEST
from hushuffle.model import number
from hushuffle.model.solver import Parameter, Requirement, solve, verdict
from hushuffle.specification import Specification

_RARE: Final = 1e-15
"""The smallest probability of an additional message that the search tries."""

_SOME: Final = 1e-9
"""The search starts at this probability, which is valid for any number of people and values."""

_SENT: Final = {"blanket-messages": "blanket messages", "fakes-per-value": "fakes of each value"}
_READABLE: Final = "Reports equal the answers: without the shuffler there is no local epsilon."
_NO_MESSAGES: Final = "Additional messages are not allowed (most_messages)."
_FINE: Final = 1e-8
"""Relative resolution of a number of messages."""

_MANY: Final = 10_000
"""Hashed reports are tried if there are at least this many values."""

_FEW: Final = 256
"""The first search uses this number of hash buckets; its result determines the number of messages per bucket."""

_SPARE: Final = 0.01
"""The number of hash buckets exceeds the computed minimum, and stays below the limit, by this relative margin."""


@dataclass(frozen=True, kw_only=True)
class MessageSearch(ColumnSearch):
    """Searches for a deployment with additional messages and true reports or, if `noisy`, noisy reports.

    Noisy reports have the largest local epsilon that targets.local_epsilon allows. For the additional messages, clients
    run Bernoulli trials. The search finds the fewest `trials` that suffice at p = 1, then the smallest p for this
    number. Privacy increases with the trials and with p (docs/theory/histograms.md, Corollary 3). Without a target
    for the privacy of the release, the search takes the most messages that accuracy and limits allow.
    """

    noisy: bool = False

    def misfit(self) -> str:
        try:
            self.specification  # noqa: B018 - evaluated for its validation
        except SpecificationError as error:
            return " ".join(problem.hint or APART for problem in error.problems)
        return ""

    @cached_property
    def specification(self) -> Specification:
        """A valid specification of this mechanism, with arbitrary noise and an arbitrary number of messages."""
        return self.wishes.specification(self._randomizer(1.0 if self.noisy else math.inf), self.shuffler)

    @property
    def mechanism(self) -> str:
        return super().mechanism if self.noisy else f"true reports{self.wishes.on_levels}"

    def behind_of(self, shuffler: Mapping[str, Any]) -> str:
        """Return the kind of additional messages in words, with their number if `shuffler` sets it."""
        kind = shuffler["kind"]
        if kind == "scrambler":
            return super().behind_of(shuffler)
        if shuffler is self.shuffler:
            return _SENT[kind]
        own = self.protocol(self._local, shuffler).shuffler.own_messages
        return f"{_SENT[kind]} ({number(own, up=True)} per person)"

    @property
    def _local(self) -> float:
        return self._most_local() if self.noisy else math.inf

    @property
    def _largest(self) -> tuple[int, float]:
        """The largest number of trials (or dummies of a scrambler) and the largest probability that are tried."""
        kind = self.shuffler["kind"]
        if kind == "scrambler":
            return self.wishes.most_dummies, 1.0
        if kind == "fakes-per-value":
            return 1, min(0.5, rounded(MOST / (self.wishes.n * self.wishes.k), up=False))
        return max(1, min(MOST_TRIALS, LARGEST // self.wishes.n)), 1.0

    @property
    def _exposed(self) -> str:
        trials, p = self._largest
        most = f"{trials:,} dummies"
        if self.shuffler["kind"] != "scrambler":
            own = self.protocol(self._local, self._table(trials, p)).shuffler.own_messages
            most = f"{own:,g} additional messages of each person"
        return f"The privacy targets are missed even with {most}, the largest number tried."

    def _table(self, trials: int, p: float) -> dict[str, Any]:
        kind, honest = self.shuffler["kind"], self.wishes.honest
        if kind == "scrambler":
            return {"kind": kind, "dummies": trials}
        table = {"kind": kind, "p": p, **({"trials": trials} if trials > 1 else {})}
        return table if honest == 1 else {**table, "honest": honest}

    def _found(self) -> Candidate | Miss:
        targets = self.specification.targets
        if not self.noisy and targets.local_epsilon is not None:
            return self.miss(_READABLE)
        if self.noisy and self.wishes.most_messages <= 1:
            return self.miss(_NO_MESSAGES)
        if self.noisy and self.short(replace(self.protocol(self._local), shuffler=UniformShuffle())) <= 0:
            return self.miss(f"With local epsilon {self._local:g} no additional messages are needed.")
        hidden = targets.epsilon is not None or (targets.guessing is not None and self.exposure.total == 1)
        table = self._fewest() if hidden else self._most()
        if table is None:
            return self.miss(self._exposed if hidden else _NO_MESSAGES)
        return self.judged(self._local, table)

    def _error(self, protocol: Protocol) -> float:
        return no_error(lambda: self.wishes.limited(protocol))

    def _fewest(self) -> dict[str, Any] | None:
        """Return [shuffler] with the fewest messages that meet the privacy targets, rounded up; None if none do."""
        local, (most, top) = self._local, self._largest

        def behind(trials: float, p: float) -> Protocol:
            return self.protocol(local, self._table(int(trials), p))

        private = Requirement(excess=self.short)
        number = Parameter(
            name="trials",
            apply=lambda trials: behind(trials, top),
            easiest=most,
            hardest=1,
            stride=2,
            whole=True,
            resolution=0,
        )
        fewest = solve(number, private)
        if fewest is None:
            return None
        trials = int(fewest.value)
        if self.shuffler["kind"] == "scrambler":
            return self._table(trials, top)
        rare = Parameter(name="p", apply=partial(behind, trials), easiest=top, hardest=_RARE, start=top, stride=4)
        rarest = solve(rare, private)
        assert rarest is not None  # p = `top` meets the targets
        return self._table(trials, min(rounded(rarest.value, up=True), top))

    def _most(self) -> dict[str, Any] | None:
        """Return [shuffler] with the most messages that accuracy and limits allow, rounded down; None if none."""
        local, wanted, allowed = self._local, self.wishes.wanted, self.wishes
        own = self.shuffler["kind"] in _SENT
        beginning = self.protocol(local, self._table(*self._largest))
        limit = min(allowed.most_messages, allowed.most_bits / beginning.randomizer.layout.bits) - 1
        most = min(limit, beginning.shuffler.own_messages) if own else float(allowed.most_dummies)
        if most <= 0:
            return None

        def table(messages: float) -> dict[str, Any]:
            if not own:
                return self._table(int(messages), 1.0)
            messages = min(messages, most)  # the logarithm may have rounded the number up
            tossed = with_messages(self.protocol(local), messages).shuffler.tossed
            assert tossed is not None
            trials = max(1, math.ceil(messages)) if self.shuffler["kind"] == "blanket-messages" else 1
            return self._table(trials, rounded(tossed[1], up=False))

        if wanted is None:
            return table(most)
        number = Parameter(
            name="messages",
            apply=lambda messages: self.protocol(local, table(messages)),
            easiest=min(_RARE, most),
            hardest=most,
            resolution=_FINE,
        )
        solution = solve(number, verdict(lambda protocol: self._error(protocol) <= wanted))
        # If even the fewest messages miss the accuracy target, the judged candidate shows by how much.
        return table(most if solution is None else solution.value)


@dataclass(frozen=True, kw_only=True)
class HashedSearch(MessageSearch):
    """Searches for a deployment of true hashed reports among blanket messages, if there are too many values to cover.

    Each client reports the bucket of its value under a fresh hash function. More buckets need more messages (k hardly
    matters), and collisions in a bucket increase the error (docs/theory/histograms.md, Theorem 9). The search takes the
    fewest buckets that meet the accuracy target, or as many as the limit of messages allows.
    """

    @property
    def mechanism(self) -> str:
        chosen = self.beside["g"] != _FEW  # at _FEW the number of buckets is not chosen yet
        return f"true hashed reports ({self.beside['g']:,} buckets)" if chosen else "true hashed reports"

    def _found(self) -> Candidate | Miss:
        targets = self.specification.targets
        if targets.local_epsilon is not None:
            return self.miss(_READABLE)
        if self.wishes.most_messages <= 1:
            return self.miss(_NO_MESSAGES)
        table = self._fewest()
        if table is None:
            return self.miss(self._exposed)
        each = self.protocol(math.inf, table).shuffler.own_messages / _FEW  # messages of a person, for each bucket
        most = int(min(self.wishes.k, (self.wishes.most_messages - 1) / each * (1 - _SPARE)))
        return self.of(max(self._fewest_buckets(each, most), 2)).hidden()

    def of(self, buckets: int) -> HashedSearch:
        """Return the same search with another number of buckets."""
        return replace(self, beside={"g": buckets})

    def hidden(self) -> Candidate | Miss:
        """Return the deployment with this number of buckets and the fewest sufficient blanket messages, or a `Miss`."""
        table = self._fewest()
        return self.miss(self._exposed) if table is None else self.judged(math.inf, table)

    def error_with(self, each: float) -> float:
        """Return the standard error if a person sends `each` messages per bucket."""
        messages = each * self.beside["g"]
        trials = max(1, math.ceil(messages))
        return self._error(self.protocol(math.inf, self._table(trials, messages / trials)))

    def _fewest_buckets(self, each: float, most: int) -> int:
        """Return the fewest buckets that meet the accuracy target; `most` if fewer do not."""
        wanted = self.wishes.wanted
        if wanted is None or most <= 2:
            return most

        buckets = Parameter(name="buckets", apply=int, easiest=most, hardest=2, whole=True, resolution=0)
        solution = solve(buckets, verdict(lambda number: self.of(number).error_with(each) <= wanted))
        return most if solution is None else min(math.ceil((solution.value - 0.5) * (1 + _SPARE)), most)


def _searches(wishes: ColumnWishes) -> Iterator[MessageSearch]:
    """Yield searches of true reports with each kind of additional messages; noisy reports if targets.local_epsilon."""
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
    if wishes.written is not None:
        yield WrittenSearch(wishes=wishes, kind=begun.kind, beside={}, shuffler=wishes.written)


@dataclass(frozen=True, kw_only=True)
class WrittenSearch(MessageSearch):
    """Judges true reports behind the shuffler of the file, whose settings are kept."""

    def behind_of(self, shuffler: Mapping[str, Any]) -> str:
        return ColumnSearch.behind_of(self, shuffler)

    def _found(self) -> Candidate | Miss:
        readable = self.wishes.local_limit is not None
        return self.miss(_READABLE) if readable else self.judged(math.inf)


@dataclass(frozen=True, kw_only=True)
class AnswerWishes(ColumnWishes):
    """The request for a deployment of one column of categories."""

    def searches(self) -> tuple[list[Search], list[Miss]]:
        """Return searches for noisy reports, and for additional messages of clients or a shuffler."""
        noisy, misfits = searches(self)
        hidden, others = fit(_searches(self))
        return [*noisy, *hidden], [*misfits, *others]
