"""The sections [randomizer], [shuffler] and [[adversaries]]: one class for each `kind` builds the object."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, Self, Union

from pydantic import ConfigDict, Discriminator, Field, Tag, create_model, model_validator

from hushuffle.errors import InvalidInputError
from hushuffle.mechanisms import adversaries, randomizers, shufflers
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.mechanisms.randomizers.settings import Table
from hushuffle.mechanisms.shufflers.augmented_shuffle import LARGEST_PURE
from hushuffle.mechanisms.shufflers.blanket_messages import MOST_TRIALS
from hushuffle.mechanisms.shufflers.dummy_law import LARGEST
from hushuffle.mechanisms.shufflers.secure_aggregation import MOST_COINS, MOST_SERVERS
from hushuffle.specification._base import Epsilon, Name, Probability, Section, ShufflerSection, either, refuse
from hushuffle.specification.order import MallowsShuffle, Order

PLANNED = {
    "adversaries": ("traffic",),
}
"""Values of `kind` that are reserved but not implemented."""


Rows = Annotated[
    tuple[
        Annotated[
            tuple[Annotated[float, Field(strict=True, ge=0, le=1)], ...],
            Field(strict=False, min_length=1),
        ],
        ...,
    ],
    Field(strict=False, min_length=2),
]
"""A matrix of probabilities: a list for each row."""


class RandomizerSection(Section):
    """[randomizer]: the keys are those that the mechanism declares."""

    mechanism: ClassVar[type[Mechanism]]
    kind: str

    def given(self) -> dict[str, Any]:
        """Return the settings that the file gives."""
        settings = {name: getattr(self, name) for name in _table(self.mechanism).settings}
        return {name: value for name, value in settings.items() if value is not None}

    @classmethod
    def given_in(cls, raw: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the settings in a table of the file; None if a setting is missing or has a wrong type."""
        return _table(cls.mechanism).given(raw)

    def build(self, k: int) -> Mechanism:
        """Return the randomizer for k categories."""
        return self.mechanism.from_settings(k, self.given())

    def settled(self, built: Mechanism) -> dict[str, Any]:
        """Return the table of the file, completed by the settings that the mechanism chose for missing keys."""
        table, written = _table(self.mechanism), self.model_dump(exclude_none=True)
        left = [name for name in table.settings if name not in written and name not in (table.either or ())]
        return {**written, **{name: getattr(built, name) for name in left}}


def _table(mechanism: type[Mechanism]) -> Table:
    assert mechanism.table is not None
    return mechanism.table


def _section(mechanism: type[Mechanism]) -> type[RandomizerSection]:
    """Return the section class of a mechanism, built from the keys that the mechanism declares."""
    table = _table(mechanism)

    class Base(RandomizerSection):
        model_config = ConfigDict(json_schema_extra=either(*table.either) if table.either else None)

    types: dict[str, Any] = {"epsilon": Epsilon, "number": float, "integer": int, "matrix": Rows, "file": Name}
    fields: dict[str, Any] = {"kind": (Literal[table.kind], ...)}
    for name, setting in table.settings.items():
        limited = Literal[setting.choices] if setting.type == "choice" else types[setting.type]
        if setting.limits:
            limits: dict[str, Any] = dict(setting.limits)
            limited = Annotated[limited, Field(**limits)]
        described = Field(default=None if setting.optional else ..., description=setting.about)
        fields[name] = (limited | None if setting.optional else limited, described)
    section = create_model(mechanism.__name__, __base__=Base, __doc__=table.about, **fields)
    section.mechanism = mechanism
    return section


def _found() -> dict[str, type[RandomizerSection]]:
    """Return the section class of every mechanism that a specification can name, by its `kind`."""
    for module in pkgutil.iter_modules(randomizers.__path__):
        importlib.import_module(f"{randomizers.__name__}.{module.name}")
    waiting: list[type[Mechanism]] = [Mechanism]
    sections: dict[str, type[RandomizerSection]] = {}
    while waiting:
        mechanism = waiting.pop()
        waiting += mechanism.__subclasses__()
        if mechanism.table is not None and mechanism.__module__.startswith(randomizers.__name__):
            sections[mechanism.table.kind] = _section(mechanism)
    return dict(sorted(sections.items()))


RANDOMIZERS: Final = _found()
"""The section class for each `kind` of randomizer: one for each mechanism that declares a `table`."""


class UniformShuffle(ShufflerSection):
    """Reports leave in a uniformly random order."""

    kind: Literal["uniform"]

    def build(self) -> shufflers.Shuffler:
        return shufflers.UniformShuffle()


Number = Annotated[int, Field(ge=0, le=LARGEST)]
"""Number of dummy reports."""


class DrawnDummies(Section):
    """A distribution of the number of dummy reports, which is drawn for each release."""

    kind: str

    def law(self) -> shufflers.DummyLaw | shufflers.GeometricDummies:
        """Return the distribution of the number of dummies."""
        raise NotImplementedError

    @model_validator(mode="after")
    def _can_be_built(self) -> Self:
        try:
            self.law()
        except InvalidInputError as error:
            refuse(error.problem.rule, error.problem.hint)
        return self


class BinomialDummies(DrawnDummies):
    """The number of dummies is the number of successes in independent Bernoulli trials."""

    kind: Literal["binomial"]
    trials: Annotated[int, Field(ge=1, le=LARGEST)]
    """Number of Bernoulli trials."""
    p: Probability
    """Probability of success."""

    def law(self) -> shufflers.DummyLaw:
        """Return the distribution of the number of dummies."""
        return shufflers.DummyLaw.binomial(trials=self.trials, p=self.p)


class GeometricDummies(DrawnDummies):
    """The number of dummies has a geometric distribution: each number is less likely by the same factor."""

    kind: Literal["geometric"]
    mean: Annotated[float, Field(gt=0, le=LARGEST)]
    """Mean number of dummies."""

    def law(self) -> shufflers.DummyLaw:
        """Return the distribution of the number of dummies."""
        return shufflers.DummyLaw.geometric(mean=self.mean)


class LaplaceDummies(DrawnDummies):
    """The number of dummies has a discrete Laplace distribution, truncated at 0 and at twice its center."""

    kind: Literal["discrete-laplace"]
    center: Annotated[int, Field(ge=0, le=LARGEST // 2)]
    """The most likely number of dummies, which is also the mean."""
    scale: Annotated[float, Field(gt=0, le=LARGEST)]
    """Scale: a number of dummies farther from the center by `scale` is less likely by a factor e."""

    def law(self) -> shufflers.DummyLaw:
        """Return the distribution of the number of dummies."""
        return shufflers.DummyLaw.discrete_laplace(center=self.center, scale=self.scale)


class OwnDummies(DrawnDummies):
    """The number of dummies has a given distribution: a list of numbers and their probabilities."""

    kind: Literal["own"]
    numbers: Annotated[tuple[Annotated[Number, Field(strict=True)], ...], Field(strict=False, min_length=1)]
    """The possible numbers of dummies, all different."""
    probabilities: Annotated[
        tuple[Annotated[float, Field(strict=True, ge=0, le=1)], ...], Field(strict=False, min_length=1)
    ]
    """Probabilities of `numbers`; the sum is 1."""

    def law(self) -> shufflers.DummyLaw:
        """Return the distribution of the number of dummies."""
        if not len(self.numbers) == len(set(self.numbers)) == len(self.probabilities):
            refuse("must have as many probabilities as different numbers")
        return shufflers.DummyLaw.of(dict(zip(self.numbers, self.probabilities, strict=True)))


class EndlessDummies(DrawnDummies):
    """The number of dummies has a geometric distribution without a largest number, which needs no delta."""

    kind: Literal["endless-geometric"]
    ratio: Probability
    """Ratio of the probabilities of m + 1 and of m dummies."""

    def law(self) -> shufflers.GeometricDummies:
        """Return the distribution of the number of dummies."""
        return shufflers.GeometricDummies(ratio=self.ratio)


DUMMY_LAWS: Final = (BinomialDummies, GeometricDummies, LaplaceDummies, OwnDummies)
"""The classes that describe a random number of dummies, one per `kind`."""


def _kind_of_dummies(value: Any) -> str | None:
    """Return which member of `Dummies` a value must match."""
    if isinstance(value, dict):
        return value.get("kind") if isinstance(value.get("kind"), str) else None
    return value.kind if isinstance(value, DrawnDummies) else "number"


Dummies = Annotated[
    Annotated[Number, Tag("number")]
    | Annotated[BinomialDummies, Tag("binomial")]
    | Annotated[GeometricDummies, Tag("geometric")]
    | Annotated[LaplaceDummies, Tag("discrete-laplace")]
    | Annotated[OwnDummies, Tag("own")],
    Discriminator(_kind_of_dummies),
]


class Scrambler(ShufflerSection):
    """Adds dummy reports; then all reports leave in a uniformly random order."""

    kind: Literal["scrambler"]
    dummies: Dummies
    """Number of dummy reports, drawn from the randomizer's blanket: an integer, or a distribution."""

    def build(self) -> shufflers.Shuffler:
        drawn = self.dummies
        return shufflers.Scrambler(dummies=drawn if isinstance(drawn, int) else drawn.law())


def _kept_secret(honest: float) -> dict[str, str]:
    share = "all people" if honest == 1 else f"a share of {honest:g} of the people"
    return {"devices": f" Those of {share} send their additional messages, and do not reveal which these are."}


class BlanketMessages(ShufflerSection):
    """Clients send blanket messages in addition; all messages leave in a uniformly random order."""

    calibrated = "messages"
    kind: Literal["blanket-messages"]
    p: Annotated[float, Field(gt=0, le=1)]
    """Probability of success of a client's Bernoulli trial; each success adds one blanket message."""
    trials: Annotated[int, Field(ge=1, le=MOST_TRIALS)] = 1
    """Number of Bernoulli trials of each client."""
    honest: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Fraction of clients that follow the protocol and do not collude; the guarantee protects them against all
    others."""

    @property
    def assumed(self) -> Mapping[str, str]:  # type: ignore[override]
        return _kept_secret(self.honest)

    def build(self) -> shufflers.Shuffler:
        return shufflers.BlanketMessages(p=self.p, trials=self.trials, honest=self.honest)


class FakesPerValue(ShufflerSection):
    """Clients send fake reports, with one Bernoulli trial per category; all leave in a uniformly random order."""

    calibrated = "messages"
    kind: Literal["fakes-per-value"]
    p: Probability
    """Probability that a client sends a fake report of a category."""
    honest: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Fraction of clients that follow the protocol and do not collude; the guarantee protects them against all
    others."""

    @property
    def assumed(self) -> Mapping[str, str]:  # type: ignore[override]
        return _kept_secret(self.honest)

    def build(self) -> shufflers.Shuffler:
        return shufflers.FakesPerValue(p=self.p, honest=self.honest)


class AugmentedShuffle(ShufflerSection):
    """The shuffler keeps a sample of the reports and adds dummies of each category; all leave in a random order."""

    model_config = ConfigDict(json_schema_extra=either("pure_epsilon", "each"))
    assumed = {"shuffler": " It adds the described dummies, and keeps their number secret."}  # noqa: RUF012 - a constant
    trusted_with = (
        "It is also trusted to sample reports, to draw the number of dummies of each category, and to keep both "
        "secret. Otherwise nothing hides an answer."
    )
    calibrated = "nothing"
    kind: Literal["augmented"]
    trusted: Literal[True]
    """Must be true: the operator samples, adds dummies and keeps their number secret. Nothing else protects a value."""
    pure_epsilon: Annotated[float, Field(gt=0, le=LARGEST_PURE)] | None = None
    """Central epsilon in nats at delta = 0; it determines `kept` and the distribution of the dummies."""
    each: (
        Annotated[
            BinomialDummies | GeometricDummies | LaplaceDummies | OwnDummies | EndlessDummies,
            Field(discriminator="kind"),
        ]
        | None
    ) = None
    """Instead of `pure_epsilon`: distribution of the number of dummies of a category, drawn for each category."""
    kept: Annotated[float, Field(gt=0, le=1)] | None = None
    """With `each`: probability that the shuffler keeps a report (default: 1)."""

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.pure_epsilon is None) == (self.each is None):
            refuse("must have either pure_epsilon or each", "For a guarantee without a delta, set pure_epsilon = 1.0.")
        if self.pure_epsilon is not None and self.kept is not None:
            refuse("must have no kept beside pure_epsilon", "It follows from pure_epsilon.")
        return self

    def build(self) -> shufflers.Shuffler:
        if self.each is None:
            assert self.pure_epsilon is not None
            return shufflers.AugmentedShuffle.pure(epsilon=self.pure_epsilon)
        return shufflers.AugmentedShuffle(each=self.each.law(), kept=1.0 if self.kept is None else self.kept)


class SecureAggregation(ShufflerSection):
    """The servers release only sums over all reports: of one-hot encodings, or of reports of a single number."""

    kind: Literal["secure-aggregation"]
    coins: Annotated[int, Field(ge=0, le=MOST_COINS)] = 0
    """For one-hot encodings: fair Bernoulli trials per server and sum; a server adds the number of successes."""
    servers: Annotated[int, Field(ge=1, le=MOST_SERVERS)] = 2
    """Number of servers."""
    honest: Annotated[int, Field(ge=0, le=MOST_SERVERS)] = 1
    """Number of servers whose noise stays secret; the guarantee holds against all others."""

    def build(self) -> shufflers.Shuffler:
        return shufflers.SecureAggregation(coins=self.coins, servers=self.servers, honest=self.honest)


class NoShuffle(ShufflerSection):
    """Reports leave in the order of their senders."""

    kind: Literal["none"]

    def build(self) -> shufflers.Shuffler:
        return shufflers.NoShuffle()


class Uninformed(Section):
    """Uninformed adversary: knows no answer, and guesses one person's answer."""

    kind: Literal["uninformed"]

    def guesser(self) -> adversaries.Guesser | None:
        """Return the adversary that guesses one person's answer."""
        return adversaries.Uninformed()


class Strong(Section):
    """Strong adversary: knows all other people's answers, and guesses one person's answer."""

    kind: Literal["strong"]

    def guesser(self) -> adversaries.Guesser | None:
        """Return the adversary that guesses one person's answer."""
        return adversaries.Strong()


class Informed(Section):
    """Informed adversary: knows the answers of m other people, and guesses one person's answer."""

    kind: Literal["informed"]
    m: Annotated[int, Field(ge=0)]
    """Number of other people whose answers are known, at most n - 1."""

    def guesser(self) -> adversaries.Guesser | None:
        """Return the adversary that guesses one person's answer."""
        return adversaries.Informed(m=self.m)


class Linker(Section):
    """Re-identification adversary (linker): names the person who sent a report."""

    kind: Literal["linker"]

    def guesser(self) -> adversaries.Guesser | None:
        """Return None: a re-identification adversary guesses senders, not values."""
        return None


if TYPE_CHECKING:
    AnyRandomizer = RandomizerSection
else:
    AnyRandomizer = Annotated[Union[tuple(RANDOMIZERS.values())], Field(discriminator="kind")]  # noqa: UP007
AnyShuffler = Annotated[
    UniformShuffle
    | Scrambler
    | BlanketMessages
    | FakesPerValue
    | AugmentedShuffle
    | SecureAggregation
    | MallowsShuffle
    | NoShuffle,
    Field(discriminator="kind"),
]
AnyAdversary = Annotated[Uninformed | Strong | Informed | Linker | Order, Field(discriminator="kind")]
