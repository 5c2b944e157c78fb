"""Blanket messages: every client sends its report and further messages that do not depend on its value."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final

from hushuffle import _checks
from hushuffle.errors import Problem
from hushuffle.mechanisms.settings import Setting, SettingsTable
from hushuffle.mechanisms.shufflers.base import Reveals, Shuffler
from hushuffle.mechanisms.shufflers.dummy_law import LARGEST, binomial_dummies
from hushuffle.mechanisms.shufflers.source import Source, Trials

MOST_TRIALS = 10_000
"""Maximum number of blanket messages of a person."""

HONEST: Final = Setting(
    type="number",
    about="Fraction of clients that follow the protocol and do not collude; the guarantee protects them against all\n"
    "others.",
    limits={"ge": 0, "le": 1},
    default=1.0,
)
"""The key `honest` of shufflers whose clients send additional messages."""


@dataclass(frozen=True, kw_only=True)
class BlanketMessages(Shuffler):
    """Each client sends its report and, in each of `trials` trials, a *blanket message* with probability `p`.

    A blanket message is drawn from the randomizer's privacy blanket, independently of the client's value: for
    randomized response it is uniform over the k values. The shuffler releases all messages in a uniformly random order
    and adds nothing. With `RandomizedResponse(k=k, epsilon=math.inf)` the report is the value: only these messages
    protect it, and an observer of one client's messages can read it. Use `LocalHashing(k=k, g=g, epsilon=math.inf)` if
    there are so many values that each client would need too many messages.

    Args:
        p: the probability of a blanket message, in [0, 1]; a person sends trials * p of them on average.
        trials: Bernoulli trials of each person, 1 to 10,000.
        honest: the fraction of the n people that follow the protocol and do not collude, in [0, 1]. Guarantees
            protect an honest person against all others together. Error figures assume that all people are honest.

    Raises:
        InvalidInputError: a number is out of range.

    Source: Luo, Wang, Yi 2022 (almost a single message); Li, Liu, Feng, Huang, Hu, Liu, Ren, Qin 2020 (dummy points,
    p = 1); docs/theory/histograms.md, Theorem 2, Corollary 3 and Theorem 9.

    >>> import hushuffle as hs
    >>> truth = hs.RandomizedResponse(k=1000, epsilon=float("inf"))
    >>> survey = hs.Protocol(randomizer=truth, shuffler=hs.BlanketMessages(p=0.04), n=1_000_000)
    >>> print(hs.dp.epsilon(survey, delta=1e-6))
    1.044 nats (certified bracket)
    """

    p: float
    trials: int = 1
    honest: float = 1.0
    people: int | None = field(default=None, init=False, repr=False)
    number: int | None = field(default=None, init=False, repr=False)
    reveals = Reveals.MULTISET
    table = SettingsTable(
        kind="blanket-messages",
        about="Clients also send blanket messages, independent of all values; all leave in a uniformly random order.",
        settings={
            "p": Setting(
                type="number",
                about="For blanket messages: probability that a Bernoulli trial succeeds and adds one message.",
                limits={"gt": 0, "le": 1},
            ),
            "trials": Setting(
                type="integer",
                about="Number of Bernoulli trials of each client.",
                limits={"ge": 1, "le": MOST_TRIALS},
                default=1,
            ),
            "honest": HONEST,
        },
        messages=True,
        calibrated="messages",
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", _checks.probability("p", self.p))
        object.__setattr__(self, "trials", _checks.integer("trials", self.trials, low=1, high=MOST_TRIALS))
        object.__setattr__(self, "honest", _checks.probability("honest", self.honest))

    @property
    def assumed(self) -> Mapping[str, str]:
        return secret_messages(self.honest)

    def problems(self, *, truthful: bool, n: int | None, k: int | None) -> Iterator[Problem]:
        if n is not None:
            yield from too_many_people("blanket-messages", n)
            if n <= LARGEST < n * self.trials:
                rule = f"must be at most {LARGEST // n:,}: all n = {n:,} people together may have at most {LARGEST:,}"
                yield Problem(key="shuffler.trials", rule=f"{rule} trials", value=f"{self.trials:,}")

    def fitted(self, *, n: int, values: int) -> Shuffler:
        if n * self.trials > LARGEST:
            _checks.reject("trials", f"at most {LARGEST:,} in total over all people", self.trials)
        return self._with(people=n)

    @property
    def sources(self) -> tuple[Source, ...]:
        number, p = (self.coins, self.p) if self.number is None else (self.number, 1.0)
        return (Source(count=Trials(number=number, p=p), from_people=True),)

    @property
    def own_messages(self) -> float:
        return self.trials * self.p

    @property
    def most_own_messages(self) -> int:
        return min(MOST_TRIALS, LARGEST // max(self.people or 1, 1))

    @property
    def most_messages(self) -> int:
        return self.trials

    def with_own_messages(self, number: float) -> Shuffler:
        trials = max(self.trials, math.ceil(number))
        return replace(self, p=min(number / trials, 1.0), trials=trials)

    def secret(self, n: int) -> tuple[int, Shuffler]:
        if self.honest == 1:
            return n, self
        if self.number is not None:
            _checks.unsupported("With a fixed number of messages, the number from honest people is unknown.")
        return honest_people(self.honest, n), replace(self, honest=1.0)

    @property
    def coins(self) -> int:
        """Number of Bernoulli trials for blanket messages of all people together.

        Raises:
            UnsupportedProtocolError: the shuffler belongs to no protocol, so the number of people is missing.
        """
        if self.people is None:
            _checks.unsupported(
                "The number of messages depends on n. Use the `shuffler` of a `Protocol`, which knows n."
            )
        return self.people * self.trials

    @property
    def dummies(self) -> int:
        if self.number is not None:
            return self.number
        law = binomial_dummies(self.coins, self.p)
        if law.numbers.size > 1:
            _checks.unsupported(
                f"This needs a fixed number of dummies, but the shuffler draws it {law.words}. Fix it with "
                "protocol.with_dummies(...)."
            )
        return int(law.numbers[0])

    @property
    def most_dummies(self) -> int | None:
        return self.coins if self.number is None else None

    def with_dummies(self, dummies: int) -> Shuffler:
        low, high = (0, self.coins) if self.number is None else (self.number, self.number)
        return self._with(number=_checks.integer("dummies", dummies, low=low, high=high))

    def describe(self) -> str:
        several = f"up to {self.trials:,} additional blanket messages, each"
        sends = "an additional blanket message" if self.trials == 1 else several
        trusted = "" if self.honest == 1 else f" (a fraction of {self.honest:.4g} of all people is honest)"
        return (
            f"each person sends {sends} with probability {self.p:.6g}{trusted}, and a shuffler releases all messages "
            "in a uniformly random order"
        )


def honest_people(share: float, n: int) -> int:
    """Return the number of honest people among n: n times `share`, rounded down, but at least 1 (the target).

    >>> honest_people(0.9, 1000), honest_people(0.0, 1000)
    (900, 1)
    """
    return max(1, math.floor(Fraction(str(share)) * n))


def secret_messages(honest: float) -> dict[str, str]:
    """Return what is assumed of the devices of the `honest` fraction of people."""
    share = "all people" if honest == 1 else f"a share of {honest:g} of the people"
    return {"devices": f" Those of {share} send their additional messages, and do not reveal which these are."}


def too_many_people(kind: str, n: int) -> Iterator[Problem]:
    """Yield the problem of more people than the distribution of their messages is exact for."""
    if n > LARGEST:
        rule, hint = f"must be another kind for more than {LARGEST:,} people", "A scrambler works for any n."
        yield Problem(key="shuffler.kind", rule=rule, value=f'"{kind}"', hint=hint)
