"""The sections [randomizer], [shuffler] and [[adversaries]]: one class for each `kind` builds the object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, Self, Union

from pydantic import ConfigDict, Discriminator, Field, Tag, create_model, model_validator

from hushuffle.mechanisms import adversaries, randomizers, shufflers
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.mechanisms.settings import SettingsTable
from hushuffle.mechanisms.shufflers.dummy_law import LARGEST, four_digits, gaussian_center, laplace_center
from hushuffle.specification._base import (
    Epsilon,
    Name,
    Probability,
    Section,
    ShufflerSection,
    checked,
    declared_in,
    either,
    refuse,
)
from hushuffle.specification.order import MallowsShuffle, Order

PLANNED = {"adversaries": ("traffic",)}
"""Values of `kind` that are reserved but not implemented."""


Rows = Annotated[
    tuple[
        Annotated[tuple[Annotated[float, Field(strict=True, ge=0, le=1)], ...], Field(strict=False, min_length=1)], ...
    ],
    Field(strict=False, min_length=2),
]
"""A matrix of probabilities: a list for each row."""


class RandomizerSection(Section):
    """[randomizer]: the keys are those that the mechanism declares."""

    mechanism: ClassVar[type[Mechanism]]
    kind: str

    def given(self) -> dict[str, Any]:
        return _given(self, _table(self.mechanism))

    @classmethod
    def given_in(cls, raw: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the settings in a table of the file; None if a setting is missing or has a wrong type."""
        return _table(cls.mechanism).given(raw)

    def build(self, k: int) -> Mechanism:
        return self.mechanism.from_settings(k, self.given())

    def settled(self, built: Mechanism) -> dict[str, Any]:
        """Return the table of the file, completed by the settings that the mechanism chose for missing keys."""
        table, written = _table(self.mechanism), self.model_dump(exclude_none=True)
        left = [name for name in table.settings if name not in written and name not in (table.either or ())]
        return {**written, **{name: getattr(built, name) for name in left}}


class DeclaredShuffler(ShufflerSection):
    """[shuffler]: the keys are those that the shuffler declares."""

    mechanism: ClassVar[type[shufflers.Shuffler]]
    kind: str

    @property
    def assumed(self) -> Mapping[str, str]:
        return self.build().assumed

    def build(self) -> shufflers.Shuffler:
        table = _table(self.mechanism)
        settings = {
            name: value.law() if isinstance(value, DrawnDummies) else value
            for name, value in _given(self, table).items()
            if table.settings[name].type != "true"
        }
        return self.mechanism.from_settings(settings)


def _table(mechanism: type[Mechanism | shufflers.Shuffler]) -> SettingsTable:
    assert mechanism.table is not None
    return mechanism.table


def _given(section: Section, table: SettingsTable) -> dict[str, Any]:
    settings = {name: getattr(section, name) for name in table.settings}
    return {name: value for name, value in settings.items() if value is not None}


def _section(mechanism: type[Any], base: type[Any], types: Mapping[str, Any]) -> type[Any]:
    """Return the section class of a mechanism or a shuffler, built from the keys that it declares."""
    table = _table(mechanism)

    class Base(base):  # type: ignore[misc]
        model_config = ConfigDict(json_schema_extra=either(*table.either) if table.either else None)

    fields: dict[str, Any] = {"kind": (Literal[table.kind], ...)}
    for name, setting in table.settings.items():
        limited = Literal[setting.choices] if setting.type == "choice" else types[setting.type]
        if setting.limits:
            limits: dict[str, Any] = dict(setting.limits)
            limited = Annotated[limited, Field(**limits)]
        default = None if setting.optional else setting.default
        described = Field(
            default=... if default is None and not setting.optional else default, description=setting.about
        )
        fields[name] = (limited | None if setting.optional else limited, described)
    section = create_model(mechanism.__name__, __base__=Base, __doc__=table.about, **fields)
    section.mechanism = mechanism
    return section


def _found(package: Any, base: type[Any], section: type[Any], types: Mapping[str, Any]) -> dict[str, type[Any]]:
    """Return the section class of every class of a package that a specification can name, by its `kind`."""
    declared = [mechanism for mechanism in declared_in(package, base) if mechanism.table is not None]
    sections = {_table(mechanism).kind: _section(mechanism, section, types) for mechanism in declared}
    return dict(sorted(sections.items()))


Number = Annotated[int, Field(ge=0, le=LARGEST)]
"""Number of dummy reports."""


class DrawnDummies(Section):
    """A distribution of the number of dummy reports, which is drawn for each release."""

    kind: str

    def law(self) -> shufflers.DummyLaw | shufflers.GeometricDummies:
        raise NotImplementedError

    def scaled(self, factor: float, tail: float) -> DrawnDummies | None:  # noqa: ARG002 - the kinds that can use both
        """Return the distribution of `factor` times the width, cut where about `tail` remains; None: impossible."""
        return None

    @model_validator(mode="after")
    def _can_be_built(self) -> Self:
        return checked(self, type(self).law)


class BinomialDummies(DrawnDummies):
    """The number of dummies is the number of successes in independent Bernoulli trials."""

    kind: Literal["binomial"]
    trials: Annotated[int, Field(ge=1, le=LARGEST)]
    """Number of Bernoulli trials."""
    p: Probability
    """Probability of success."""

    def law(self) -> shufflers.DummyLaw:
        return shufflers.DummyLaw.binomial(trials=self.trials, p=self.p)


class GeometricDummies(DrawnDummies):
    """The number of dummies has a geometric distribution: each number is less likely by the same factor."""

    kind: Literal["geometric"]
    mean: Annotated[float, Field(gt=0, le=LARGEST)]
    """Mean number of dummies."""

    def law(self) -> shufflers.DummyLaw:
        return shufflers.DummyLaw.geometric(mean=self.mean)


class LaplaceDummies(DrawnDummies):
    """The number of dummies has a discrete Laplace distribution, truncated at 0 and at twice its center."""

    kind: Literal["discrete-laplace"]
    center: Annotated[int, Field(ge=0, le=LARGEST // 2)]
    """The most likely number of dummies, which is also the mean."""
    scale: Annotated[float, Field(gt=0, le=LARGEST)]
    """Scale: a number of dummies farther from the center by `scale` is less likely by a factor e."""

    def law(self) -> shufflers.DummyLaw:
        return shufflers.DummyLaw.discrete_laplace(center=self.center, scale=self.scale)

    def scaled(self, factor: float, tail: float) -> LaplaceDummies:
        scale = four_digits(factor * self.scale)
        return LaplaceDummies(kind=self.kind, center=laplace_center(scale, tail), scale=scale)


class GaussianDummies(DrawnDummies):
    """The number of dummies has a discrete Gaussian distribution, truncated at 0 and at twice its center."""

    kind: Literal["discrete-gaussian"]
    center: Annotated[int, Field(ge=0, le=LARGEST // 2)]
    """The most likely number of dummies, which is also the mean."""
    sigma: Annotated[float, Field(gt=0, le=LARGEST)]
    """Standard deviation of the number of dummies."""

    def law(self) -> shufflers.DummyLaw:
        return shufflers.DummyLaw.discrete_gaussian(center=self.center, sigma=self.sigma)

    def scaled(self, factor: float, tail: float) -> GaussianDummies:
        sigma = four_digits(factor * self.sigma)
        return GaussianDummies(kind=self.kind, center=gaussian_center(sigma, tail), sigma=sigma)


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
        if not len(self.numbers) == len(set(self.numbers)) == len(self.probabilities):
            refuse("must have as many probabilities as different numbers")
        return shufflers.DummyLaw.of(dict(zip(self.numbers, self.probabilities, strict=True)))


class EndlessDummies(DrawnDummies):
    """The number of dummies has a geometric distribution without a largest number, which needs no delta."""

    kind: Literal["endless-geometric"]
    ratio: Probability
    """Ratio of the probabilities of m + 1 and of m dummies."""

    def law(self) -> shufflers.GeometricDummies:
        return shufflers.GeometricDummies(ratio=self.ratio)


DUMMY_LAWS: Final = (BinomialDummies, GeometricDummies, LaplaceDummies, GaussianDummies, OwnDummies)
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
    | Annotated[GaussianDummies, Tag("discrete-gaussian")]
    | Annotated[OwnDummies, Tag("own")],
    Discriminator(_kind_of_dummies),
]


EndlessOrNot = Annotated[
    BinomialDummies | GeometricDummies | LaplaceDummies | GaussianDummies | OwnDummies | EndlessDummies,
    Field(discriminator="kind"),
]
"""A distribution of the number of dummies that may have no largest number."""

_TYPES: Final[dict[str, Any]] = {
    "epsilon": Epsilon,
    "number": float,
    "integer": int,
    "matrix": Rows,
    "file": Name,
    "true": Literal[True],
    "dummies": Dummies,
    "endless dummies": EndlessOrNot,
}
"""The type of a key, by the type of its `Setting`."""

RANDOMIZERS: Final[dict[str, type[RandomizerSection]]] = _found(randomizers, Mechanism, RandomizerSection, _TYPES)
"""The section class for each `kind` of randomizer: one for each mechanism that declares a `table`."""

SHUFFLERS: Final[dict[str, type[DeclaredShuffler]]] = _found(shufflers, shufflers.Shuffler, DeclaredShuffler, _TYPES)
"""The section class for each `kind` of shuffler: one for each shuffler that declares a `table`."""


class Uninformed(Section):
    """Uninformed adversary: knows no answer, and guesses one person's answer."""

    kind: Literal["uninformed"]

    def guesser(self) -> adversaries.Guesser | None:
        return adversaries.Uninformed()


class Strong(Section):
    """Strong adversary: knows all other people's answers, and guesses one person's answer."""

    kind: Literal["strong"]

    def guesser(self) -> adversaries.Guesser | None:
        return adversaries.Strong()


class Informed(Section):
    """Informed adversary: knows the answers of m other people, and guesses one person's answer."""

    kind: Literal["informed"]
    m: Annotated[int, Field(ge=0)]
    """Number of other people whose answers are known, at most n - 1."""

    def guesser(self) -> adversaries.Guesser | None:
        return adversaries.Informed(m=self.m)


class Linker(Section):
    """Re-identification adversary (linker): names the person who sent a report."""

    kind: Literal["linker"]

    def guesser(self) -> adversaries.Guesser | None:
        """Return None: a re-identification adversary guesses senders, not values."""
        return None


if TYPE_CHECKING:
    AnyRandomizer = RandomizerSection
    AnyShuffler = ShufflerSection
else:
    AnyRandomizer = Annotated[Union[tuple(RANDOMIZERS.values())], Field(discriminator="kind")]  # noqa: UP007
    _BY_KIND = dict(sorted({**SHUFFLERS, "mallows": MallowsShuffle}.items()))
    AnyShuffler = Annotated[Union[tuple(_BY_KIND.values())], Field(discriminator="kind")]  # noqa: UP007
AnyAdversary = Annotated[Uninformed | Strong | Informed | Linker | Order, Field(discriminator="kind")]
