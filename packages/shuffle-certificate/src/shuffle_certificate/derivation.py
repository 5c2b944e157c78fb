"""Replay the steps of a certificate: each rule is checked and applied again, and the bounds on delta are combined.

A rule applies only to a release with the features of its theorem, and the next step must treat the release to which the
theorem leads. The last step of each branch is a law: its release is plain, and is checked by itself.

Source: docs/theory/more-and-less.md, Theorem 8 and Theorem 9; docs/theory/histograms.md, Theorem 2 and Corollary 3;
docs/theory/traffic.md, Theorem 5; docs/theory/order.md, Theorem 1; docs/theory/secure-sums.md, Theorem 1.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial, reduce
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, NoReturn

from flint import arb

from . import coins
from .certificate import Certificate, Messages, NotCheckedError, Plain, Release
from .composed import FINE, NEITHER, Effort, Ends, composed, nothing, one_by_one
from .ends import ball, masses_of
from .sums import least

_MOST = 4096
"""Largest number of evaluations for a mean over a random number of messages."""


class WrongStepError(Exception):
    """Raised if a step of a derivation is not what its rule says."""


def _worst(parts: Sequence[Ends], _: Plain) -> Ends:
    """Return the largest bounds of several groups."""
    return Ends(
        lambda growth, effort: reduce(arb.max, [part.least(growth, effort) for part in parts]),
        lambda growth, effort: reduce(arb.max, [part.most(growth, effort) for part in parts]),
        parts[-1].named,
    )


def _revealed(parts: Sequence[Ends], _: Plain) -> Ends:
    """Return the bounds for one group among others, given those for the group alone and for all groups mixed."""
    alone, mixed = parts
    most = lambda growth, effort: arb.min(alone.most(growth, effort), mixed.most(growth, effort))  # noqa: E731
    return Ends(mixed.least, most, mixed.named)


def _capped(parts: Sequence[Ends], plain: Plain) -> Ends:
    """Return the bounds under a cap of n messages for each target, given those without the cap."""
    n, k, truth = plain.n, plain.randomizer.k, plain.randomizer.truth
    if truth is None or plain.dummies > (k - 1) * n:
        message = "a cap needs randomized response, and room for the dummies"
        raise WrongStepError(message)

    def overfull(own: int) -> Any:
        """Return Chernoff's bound on P(a target has more than n messages) if it is the value of `own` people."""
        trials = ((own, truth), (n - own, (1 - truth) / (k - 1)), (plain.dummies, Fraction(1, k)))

        def exponent(t: float) -> float:
            return math.fsum(count * math.log1p(float(p) * math.expm1(t)) for count, p in trials) - t * (n + 1)

        t = arb(least(exponent, 1e-6, 30.0))
        bound = (-t * (n + 1)).exp()
        for count, p in trials:
            bound *= (1 + ball(p) * (t.exp() - 1)) ** count
        return bound

    changed = overfull(n) + (k - 1) * overfull(n // 2)
    return Ends(
        lambda growth, effort: parts[0].least(growth, replace(effort, decides=False)) - (1 + growth) * changed,
        parts[0].most,
    )


def _mean(numbers: Sequence[int], masses: Sequence[Any], at: Callable[[int], Ends]) -> Ends:
    """Return the bounds if a public random number has these masses: delta is the mean over it, and falls with it.

    Numbers between two evaluated ones count as the smaller one for an upper bound, as the larger one for a lower bound.
    """
    below = [arb(0), *accumulate(masses)]

    def mean(growth: Any, effort: Effort, *, above: bool) -> Any:
        values, places, tight = dict[int, Any](), {0, len(numbers) - 1}, replace(effort, decides=False)
        delta, shift = float(effort.delta), 0 if above else 1
        while True:  # intervals are halved until the bound decides about delta, or cannot
            values |= {place: at(numbers[place]).bound(above)(growth, tight) for place in places - values.keys()}
            spots, gaps = sorted(values), list[tuple[float, int, int]]()
            total = values[spots[-1]] * masses[-1] + 1 - below[-1] if above else values[0] * masses[0]
            for left, right in pairwise(spots):
                total += (below[right + shift] - below[left + shift]) * values[left if above else right]
                fall = max(float(values[left]) - float(values[right]), 0.0)
                gaps.append((float(below[right] - below[left + 1]) * fall, left, right))
            lost = math.fsum(gap for gap, *_ in gaps)
            decided = total <= effort.delta if above else total >= effort.delta
            hopeless = float(total) - lost > delta if above else float(total) + lost < delta
            if (
                (effort.decides and (decided or hopeless))
                or lost <= (1e-5 * float(total) if effort.table else 1e-10 * delta)
                or len(values) > _MOST
                or time.process_time() > effort.until
            ):
                return total
            covered, places = 0.0, set[int]()
            for gap, left, right in sorted(gaps, reverse=True):
                if gap and covered <= lost / 2:
                    places.add((left + right) // 2)
                    covered += gap

    return Ends(partial(mean, above=False), partial(mean, above=True))


def _among(messages: int) -> Ends:
    """Return the bounds for a value among `messages` uniform messages at the target's two values, for all datasets."""

    def exactly(growth: Any, _: Effort) -> Any:
        return coins.divergence([(messages, Fraction(1, 2))], Fraction(1), growth)

    return Ends(exactly, exactly)


def _numbers(messages: Messages | None) -> tuple[Sequence[int], Sequence[Any]]:
    """Return possible numbers of messages and their probabilities; far tails are left out."""
    if messages is None or messages.table:
        table = messages.table if messages else ((0, 1),)
        return [number for number, _ in table], [ball(mass) for _, mass in table]
    first, masses = masses_of(messages.trials, messages.p)
    return range(first, first + len(masses)), masses


def _features(release: Release) -> set[str]:
    """Return the names of what a release has in addition to people of one group, shuffled, with fixed dummies."""
    messages, own = release.messages, release.messages is not None and release.messages.own
    features = {
        "colluding": release.honest is not None,
        "targets": len(release.targets) > 1,
        "reports": release.reports > 1,
        "groups": len(release.groups) > 1,
        "own": own,
        "each": messages is not None and messages.each,
        "random": not own and messages is not None and messages.number is None,
        "rounds": release.rounds > 1 and not release.memory,
        "memory": release.memory > 0,
        release.view: release.view != "multiset",
    }
    return {feature for feature, has in features.items() if has}


def _of_honest(release: Release) -> Release:
    """Return the release of the honest people, with the messages that they send."""
    ((people, place),), messages = release.groups, release.messages
    honest = max(release.honest or 1, release.reports)
    if messages is not None and messages.own:
        if messages.trials % people:
            message = "the people do not make equal numbers of trials"
            raise WrongStepError(message)
        messages = replace(messages, trials=messages.trials // people * honest)
    return replace(release, groups=((honest, place),), honest=None, messages=messages)


class Rule(NamedTuple):
    """A theorem with its page, for releases with the features `on` and perhaps some of `beside`.

    `reduce` returns the simpler releases, and `join` the bounds, given theirs and the plain release.
    """

    page: str
    on: str
    beside: str
    reduce: Callable[[Release], Sequence[Release]]
    join: Callable[[Sequence[Ends], Plain], Ends] = lambda parts, _: parts[0]


def _shuffled(release: Release) -> list[Release]:
    return [replace(release, view="multiset")]


def _one_group(release: Release) -> list[Release]:
    return [replace(release, groups=(release.groups[release.targets[0]],), targets=(0,))]


def _batch(release: Release) -> list[Release]:
    """Return one batch of the release, for one report of the target."""
    ((people, place),), sent, most = release.groups, release.messages, release.reports
    if release.view in {"senders", "noisy order"}:
        return [replace(release, groups=((1, place),), view="senders", messages=None, reports=1)]
    if sent is not None:
        fewest = Messages(min(number for number, _ in sent.table), Fraction(1)) if sent.table else sent
        sent = replace(fewest, trials=fewest.trials // most)
    return [replace(release, groups=((people // most, place),), messages=sent, reports=1)]


RULES = {
    "rounds composed": Rule(
        "composition.md, Theorem 3",
        "rounds",
        "colluding, targets, reports, groups, own, each, random, sums, senders, noisy order",
        lambda release: [replace(release, rounds=1)],
    ),
    "every group": Rule(
        "pool.md, Corollary 7",
        "targets",
        "groups, senders, noisy order, own, random",
        lambda release: [replace(release, targets=(target,)) for target in release.targets],
        _worst,
    ),
    "colluding people left out": Rule(
        "histograms.md, Corollary 3", "colluding", "reports, own", lambda release: [_of_honest(release)]
    ),
    "memoized reports shuffled once": Rule(
        "composition.md, Theorem 11",
        "memory",
        "senders, capped multiset, sums, colluding",
        lambda release: [replace(release, rounds=1, memory=0)],
    ),
    "a batch for each report": Rule(
        "composition.md, Theorem 8", "reports", "senders, noisy order, sums, own, each, random", _batch
    ),
    "single ones counted": Rule("secure-sums.md, Theorem 1", "sums", "reports", _shuffled),
    "other groups seen": Rule("index.md", "groups, senders", "", _one_group),
    "between senders and counts": Rule(
        "order.md, Theorem 1",
        "noisy order",
        "groups",
        lambda release: [replace(release, view="senders", messages=None), *_shuffled(release)],
        lambda parts, _: parts[0]._replace(least=parts[1].least, named=parts[1].named),
    ),
    "some groups revealed": Rule("pool.md, Corollary 7", "groups", "", _one_group, _revealed),
    "messages of all people together": Rule(
        "histograms.md, Theorem 2",
        "own",
        "groups",
        lambda release: [replace(release, messages=release.messages and replace(release.messages, own=False))],
    ),
    "number of dummies seen": Rule("more-and-less.md, Theorem 8", "random", "groups", lambda release: [release]),
    "cap removed": Rule("traffic.md, Theorem 3", "capped multiset", "", _shuffled, _capped),
}
"""The rules that the checker replays."""

_OWN = "true values among uniform messages"

LAWS = {
    _OWN: ("histograms.md, Theorem 2", None, "response"),
    "k-ary randomized response, seen": ("index.md", None, "response"),
    "one report seen": ("index.md", False, ""),
    "randomized response of two values, shuffled": ("two-values.md, Theorem 1", True, "response of two values"),
    "k-ary randomized response, shuffled": ("blanket.md, Theorem 1", True, "response of more values"),
    "flipped bits": ("crowds.md", True, "rows"),
    "sums of one-hot reports": ("secure-sums.md, Theorem 1", True, "bits"),
    "any finite randomizer": ("pool.md, Theorem 1", True, "rows"),
}
"""The laws, each with its page, whether reports are shuffled (None: either), and the randomizers that it is for."""


def replay(certificate: Certificate, leaf: Callable[[Plain], Ends]) -> Ends:
    """Return bounds for the release of a certificate, after each step is applied again; `leaf` treats plain releases.

    Raises:
        WrongStepError: a step is wrong, missing or left over.
        NotCheckedError: the checker does not know a rule or law.
    """
    derivation = _Derivation(certificate, leaf)
    return derivation.whole() if certificate.steps else derivation.ends(certificate.plain)


class _Derivation:
    """Reads the steps in order; `place` is the next one."""

    def __init__(self, certificate: Certificate, leaf: Callable[[Plain], Ends]) -> None:
        self.given, self.leaf, self.place = certificate, leaf, 0

    def whole(self) -> Ends:
        """Return bounds for the release of the first step."""
        steps = self.given.steps
        ends = self._step(steps[0][2])
        if self.place < len(steps):
            self._wrong("a step after it belongs to no rule")
        if self._plain(steps[-1][2]) != self.given.plain:
            self._wrong("it does not treat the plain release of the certificate")
        return ends

    def _wrong(self, reason: str) -> NoReturn:
        message = f"step {self.place} of the derivation is wrong: {reason}"
        raise WrongStepError(message)

    def _step(self, expected: Release) -> Ends:
        """Return bounds for the release of the next step, which must be `expected`; read the steps that follow it."""
        if self.place == len(self.given.steps):
            self._wrong("the step after it is missing")
        name, page, release = self.given.steps[self.place]
        self.place += 1
        if release != expected:
            self._wrong("its release does not follow from the step before")
        if name not in RULES and name not in LAWS:
            message = f"the checker does not replay {name!r}"
            raise NotCheckedError(message)
        if page != (RULES[name].page if name in RULES else LAWS[name][0]):
            self._wrong(f"{name!r} is proven on another page")
        if name in LAWS:
            return self._law(name, release)
        rule, features = RULES[name], _features(release)
        if not set(rule.on.split(", ")) <= features <= {*rule.on.split(", "), *rule.beside.split(", ")}:
            self._wrong(f"{name!r} is no theorem about its release")
        self._check(name, release)
        parts = rule.reduce(release)
        if rule.on == "random":
            return self._counted(release)
        if rule.on == "reports":
            return self._batched(release, *parts)
        if rule.on == "rounds":
            return composed([(self._step(*parts), release.rounds)], f"{release.rounds:,} rounds")
        plain = self._plain(release)
        mixed = [self.ends(plain)] if rule.on == "groups" else []
        return rule.join([*(self._step(part) for part in parts), *mixed], plain)

    def _check(self, name: str, release: Release) -> None:
        """Raise an error if a further condition of a rule does not hold."""
        one_hot = self.given.randomizers[release.groups[0][1]].bits is not None
        if RULES[name].on == "sums" and one_hot:
            self._wrong("its reports are no vectors with a single 1")
        if RULES[name].on == "reports" and release.view in {"senders", "noisy order"} and release.messages is not None:
            self._wrong("messages in addition have no senders")
        if RULES[name].on == "memory" and (release.memory > 1 or release.messages is not None):
            self._wrong(f"{name!r} needs values that never change, and no messages in addition")

    def _law(self, name: str, release: Release) -> Ends:
        plain, own, features = self._plain(release), release.messages, _features(release)
        (_, shuffled, kind), device = LAWS[name], plain.randomizer
        here = "bits" if device.bits is not None else "rows" if device.rows is not None else "response"
        if here == "response":
            here += " of two values" if device.k == 2 else " of more values"
        fits = here.startswith(kind) and shuffled in (None, plain.shuffled)
        if fits and name == _OWN and own is not None and features == {"own"} and device.truth == 1:
            return _mean(*_numbers(replace(own, p=2 * own.p / device.k)), _among)
        summed = here == "bits" and "sums" in features and features <= {"sums", "each"}
        if not fits or name == _OWN or (here == "bits" and not summed) or (here != "bits" and features - {"senders"}):
            self._wrong(f"{name!r} is no law of its release")
        return self.ends(plain)

    def ends(self, plain: Plain) -> Ends:
        """Return bounds for a plain release; true values are subtracted, so all datasets have the same divergence."""
        if plain.shuffled and plain.randomizer.truth == 1 and not plain.groups:
            return _mean(*_numbers(Messages(plain.dummies, Fraction(2, plain.randomizer.k))), _among)
        return self.leaf(plain)

    def _batched(self, release: Release, batch: Release) -> Ends:
        """Return bounds for several reports of one person: batches from above, the named datasets from below."""
        if batch.messages is not None and batch.messages.each and "sums" not in _features(release):
            self._wrong("messages of each value cannot be divided")
        together = composed([(self._step(batch), release.reports)], f"{release.reports:,} batches")
        people = sum(count for count, _ in release.groups)
        alike = people - sum(count for _, count in self.given.plain.others)
        if alike not in ({1} if release.view == "senders" else {1, release.reports}):
            self._wrong("its named datasets are about other numbers of reports")
        if release.view == "senders":
            return together
        if _features(release) & {"own", "random"}:
            return together._replace(least=nothing, named=())
        plain = self._plain(replace(release, reports=1, view="sums" if release.view == "sums" else "multiset"))
        if release.view != "noisy order":
            together = together._replace(most=one_by_one(together, self.leaf(plain), release.reports))
        below = self.leaf(replace(plain, reports=alike))
        least = (
            below.least
            if alike == 1
            else composed([(below, 1), (NEITHER, 1)], "reports of one person", finer=FINE).least
        )
        return together._replace(least=least, named=below.named)

    def _counted(self, release: Release) -> Ends:
        """Return bounds for a random number of dummies; the next step treats any possible number."""
        following = self.given.steps[self.place][2].messages if self.place < len(self.given.steps) else None
        numbers, masses = _numbers(release.messages)
        number = 0 if following is None else following.number
        if number is None or number not in numbers:
            self._wrong("the step after it is about another number of dummies")

        def fixed(number: int) -> Release:
            return replace(release, messages=Messages(number, Fraction(1)) if number else None)

        self._step(fixed(number))
        return _mean(numbers, masses, lambda number: self.ends(self._plain(fixed(number))))

    def _plain(self, release: Release) -> Plain:
        """Return a release as a plain one: its first group, with its smallest number of dummies."""
        people, place = release.groups[release.targets[0]]
        randomizer, number = self.given.randomizers[place], (release.messages and release.messages.number) or 0
        if number and randomizer.rows is not None and randomizer.dummy is None:
            self._wrong("its dummies have no distribution")
        plain = self.given.plain
        others = [group for at, group in enumerate(release.groups) if at != release.targets[0]]
        groups = tuple((count, self.given.randomizers[at]) for count, at in others if release.view != "senders")
        plain = replace(plain, shuffled=release.view != "senders", groups=groups)
        return replace(plain, randomizer=randomizer, n=people, dummies=number)
