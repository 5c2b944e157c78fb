"""Fake reports: every client sends, for each of the k values, a fake report with probability p."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from hushuffle import _checks
from hushuffle.errors import Problem
from hushuffle.mechanisms.settings import Setting, SettingsTable
from hushuffle.mechanisms.shufflers.base import MOST, PerValue, Shuffler
from hushuffle.mechanisms.shufflers.blanket_messages import (
    HONEST,
    honest_people,
    secret_messages,
    too_many_people,
)
from hushuffle.mechanisms.shufflers.dummy_law import LARGEST
from hushuffle.mechanisms.shufflers.source import Source, Trials
from hushuffle.model import number


@dataclass(frozen=True, kw_only=True)
class FakesPerValue(PerValue):
    """For each of the k values, each client adds a fake report of that value with probability p.

    Each value gets Bin(n, p) fake reports, independently of all others and of the people's values. The shuffler
    releases all messages in a uniformly random order and adds nothing. Reports are the values themselves:
    `RandomizedResponse(k=k, epsilon=math.inf)`. An observer of one client's messages can read most values.

    Args:
        p: the probability of a fake report of a value, in [0, 1]; a person sends k p fakes on average. 1 - p
            protects as much as p, so p > 1/2 has no advantage, and p = 1 gives no protection.
        honest: the fraction of the n people that follow the protocol and do not collude, in [0, 1]. Guarantees
            protect an honest person against all others together. Error figures assume that all people are honest.

    Raises:
        InvalidInputError: a number is out of range, or there are more than 2**31 fake reports on average.

    Source: docs/theory/histograms.md, Theorem 4.

    >>> import hushuffle as hs
    >>> truth = hs.RandomizedResponse(k=1000, epsilon=float("inf"))
    >>> survey = hs.Protocol(randomizer=truth, shuffler=hs.FakesPerValue(p=4e-5), n=1_000_000)
    >>> print(hs.dp.epsilon(survey, delta=1e-6))
    1.044 nats (certified bracket)
    """

    p: float
    honest: float = 1.0
    table = SettingsTable(
        kind="fakes-per-value",
        about="Clients send fake reports, with one Bernoulli trial per category; all leave in a uniformly random "
        "order.",
        settings={
            "p": Setting(
                type="number",
                about="For fake reports: probability that a client sends a fake report of a category.",
                limits={"gt": 0, "lt": 1},
            ),
            "honest": HONEST,
        },
        messages=True,
        calibrated="messages",
    )

    @property
    def assumed(self) -> Mapping[str, str]:
        return secret_messages(self.honest)

    def problems(self, *, truthful: bool, n: int | None, k: int | None) -> Iterator[Problem]:
        yield from super().problems(truthful=truthful, n=n, k=k)
        if n is not None:
            yield from too_many_people("fakes-per-value", n)
            if k is not None and n <= LARGEST and n * k * self.p > MOST:
                most = number(MOST / n / k, up=False, digits=3)
                rule = (
                    f"must be at most {most}: {n:,} people may send at most {MOST:,} fake reports of {k:,} categories"
                )
                yield Problem(key="shuffler.p", rule=rule, value=f"{self.p:g}")

    def __post_init__(self) -> None:
        _checks.set_fields(self, p=_checks.probability("p", self.p), honest=_checks.probability("honest", self.honest))

    def check(self, *, n: int, values: int) -> None:
        """Raise an error if the table of the distribution of fake reports is too large for the number of people."""
        if n > LARGEST:
            _checks.reject("n", f"at most {LARGEST:,} people", n)

    @property
    def own_messages(self) -> float:
        return self.known(self.values) * self.p

    @property
    def most_own_messages(self) -> int:
        return self.known(self.values)

    @property
    def best_own_messages(self) -> float:
        return self.known(self.values) / 2  # beyond p = 1/2 the number of fake reports becomes more certain

    @property
    def most_dummies(self) -> int:
        return self.known(self.people) * self.known(self.values)

    @property
    def most_messages(self) -> int:
        return self.known(self.values)

    def with_own_messages(self, number: float) -> Shuffler:
        return replace(self, p=min(number / self.known(self.values), 1.0))

    def secret(self, n: int) -> tuple[int, Shuffler]:
        return (n, self) if self.honest == 1 else (honest_people(self.honest, n), replace(self, honest=1.0))

    @property
    def sources(self) -> tuple[Source, ...]:
        trials = Trials(number=self.known(self.people), p=self.p)
        return (Source(count=trials, each=True, from_people=True),)

    def describe(self) -> str:
        trusted = "" if self.honest == 1 else f" (a fraction of {self.honest:.4g} of all people is honest)"
        return (
            f"for each value, every person adds a fake report with probability {self.p:.4g}{trusted}, and a shuffler "
            "releases all messages in a uniformly random order"
        )
