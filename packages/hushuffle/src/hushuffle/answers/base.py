"""`Answer`: the base of all kinds of answers, which is also the kind without keys: the shares of categories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.settings import SettingsTable as Keys
from hushuffle.model import Bound, Cell, Histogram, NumberGrid, Table

# ruff: noqa: ARG002 - the defaults, which other kinds replace, use no argument

if TYPE_CHECKING:
    from hushuffle.tables.categories import Categories


@dataclass(frozen=True, kw_only=True)
class Estimated:
    """What is estimated in addition to the shares of the values: `facts` for JSON, and the same for a terminal.

    `rows` have a name, an estimate and an interval each; `notes` are sentences below the table.
    """

    facts: Mapping[str, Any]
    rows: tuple[tuple[str, str, str], ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Fakes:
    """Sybil clients whose effect an estimate states: the number of their `reports`, and who they are in words."""

    reports: int
    words: str


def error_facts(errors: Mapping[str, float]) -> dict[str, Cell]:
    """Return rows of a comparison with upper bounds on standard errors, by the name of the estimate."""
    return {
        f"standard error of the {name}": Bound(lower=0.0, upper=value, kind="upper", unit="")
        for name, value in errors.items()
    }


def moved_by(fakes: Fakes, raised: float, lowered: float, honest: float, words: str) -> dict[str, Any]:
    """Return the maximal poisoning gain of Sybil clients for JSON; `words` end the sentence about it."""
    about = f"If {fakes.words} took part, they could move {words}."
    return {"raised": raised, "lowered": lowered, "following_the_protocol": honest, "in_words": about}


@dataclass(frozen=True)
class Answer:
    """One kind of answer. Every method has a default, that of the shares of categories.

    A kind with keys of its own declares them in `keys` and has a field for each of them: the keys stand in
    [population], or in one of [[columns]], beside `kind`. Its `labels` are the values that a device randomizes.
    `estimated_as` is the key of its estimates in JSON.
    """

    keys: ClassVar[Keys | None] = None
    estimated_as: ClassVar[str] = ""
    topic: ClassVar[str] = "The estimate"
    """What is estimated, for a row that says why it is not."""
    hints: ClassVar[Mapping[str, str]] = {}
    """What to do if a key is missing, by key; an example by default."""

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """Return the answer with these keys.

        Raises:
            InvalidInputError: values that do not fit each other; the error names the key.
        """
        return cls(**settings)

    @property
    def written(self) -> dict[str, Any]:
        """The keys of the file; empty for categories."""
        if self.keys is None:
            return {}
        return {"kind": self.keys.kind, **{name: getattr(self, name) for name in self.keys.settings}}

    @property
    def labels(self) -> tuple[str, ...] | None:
        """The labels of the values; None: those of the categories in the file."""
        return None

    @property
    def coded(self) -> Categories | None:
        """How values of a data set become codes: conditions by label, bins or levels; None: by the categories."""
        return None

    @property
    def grid(self) -> NumberGrid | None:
        """The levels to which devices round values stochastically; None: no rounding."""
        return None

    def error(self, protocol: Protocol) -> float | None:
        """Return the standard error of the estimate, in its unit, for the worst values; None: there is no further one.

        Raises:
            UnsupportedProtocolError, NumericalError: the reports allow no such estimate.
        """
        return None

    def words(self, error: float | None) -> str:
        """What a report says about these answers after the description of the protocol, and `error` if it is known."""
        return ""

    def tables(self, error: float) -> tuple[Table, ...]:
        """Return the tables of a report on an estimate with this standard error."""
        return ()

    def facts(self, error: float | None, n: int) -> Mapping[str, Cell]:
        """Return rows of a comparison of deployments, for n people."""
        return {}

    def estimated(self, counts: Histogram, *, protocol: Protocol, confidence: float, fakes: Fakes) -> Estimated | None:
        """Return the estimate from counts of reports; None: there are only the shares of the values.

        Raises:
            UnsupportedProtocolError: the reports allow no such estimate.
        """
        return None


SHARES = Answer()
"""The answer whose values are categories."""
