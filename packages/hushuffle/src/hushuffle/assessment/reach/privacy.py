"""The `Design` of a reach study (with Bloom filters), and findings on what its release reveals about one person."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from hushuffle.assessment.findings import Questions
from hushuffle.curves.base import PrivacyCurve
from hushuffle.curves.search import privacy_curve
from hushuffle.mechanisms.column_views import ColumnViews
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import BitFlipping
from hushuffle.mechanisms.shufflers import UniformShuffle
from hushuffle.model import Bound, Cell, Finding, Table, Witness
from hushuffle.model.bound import percent
from hushuffle.questions import bloom, dp
from hushuffle.questions.bloom.views import views_curve
from hushuffle.specification.exposure import factor

_RELEASE: Final = "Anyone who sees the released counts"
_STRONG: Final = "An adversary who knows all other audiences, and the hash key"
_PAIR: Final = "The published pair (all columns empty, or one column full) is often the worst, but this is not proven. "
_SHUFFLER: Final = "A compromised shuffler that has the hash key"


@dataclass(frozen=True, kw_only=True)
class Design:
    """The parameters of a reach study: publishers, size and hash functions of the Bloom filters, noise, and delta.

    `views` is what the shuffler counts, with dummies; None: each bit is flipped with probability `p`.
    """

    names: tuple[str, ...]
    bits: int
    hashes: int
    delta: float
    p: float = 0.0
    views: ColumnViews | None = None

    @property
    def filters(self) -> int:
        return len(self.names)

    @property
    def protocol(self) -> Protocol:
        """The protocol with flips: the reports are the columns, the bits of all filters at one position."""
        return Protocol(randomizer=BitFlipping(width=self.filters, p=self.p), shuffler=UniformShuffle(), n=self.bits)

    @property
    def local(self) -> Bound:
        """Epsilon of one column as the shuffler gets it (nats): infinite if no bit is flipped."""
        return dp.local_epsilon(self.protocol) if self.views is None else Bound.exact(math.inf, unit="nats")

    @property
    def curve(self) -> PrivacyCurve:
        """The privacy curve of the release if one column changes."""
        return privacy_curve(self.protocol) if self.views is None else views_curve(self.views)


def central(design: Design, *, touched: int | None = None) -> Bound:
    """Central epsilon if `touched` columns may change (default: as many columns as one person sets).

    The witness of the lower bound is left out, because its values are columns, which have no labels.
    """
    return replace(_epsilon(design, touched or design.hashes), witness=None)


@lru_cache(maxsize=64)
def _epsilon(design: Design, touched: int) -> Bound:
    if design.views is not None:
        return bloom.views_epsilon(design.views, delta=design.delta, touched=touched)
    return bloom.epsilon(filters=design.filters, bits=design.bits, p=design.p, delta=design.delta, hashes=touched)


def findings(questions: Questions, design: Design) -> tuple[Finding, ...]:
    """A finding for each adversary; the first finding is the central guarantee for one person."""
    rows = (
        questions.ask("central-dp", _RELEASE, lambda: _central(design)),
        questions.ask("membership", _STRONG, lambda: _member(design)),
        questions.ask("local-dp", _SHUFFLER, lambda: _local(design)),
    )
    return tuple(row for row in rows if row is not None)


def table(design: Design) -> Table:
    """Epsilon for datasets that differ in one column, in one added or exchanged person, and so on."""
    column = central(design, touched=1)
    rows: list[tuple[Cell, ...]] = [("one column of bits", 1, column)]
    if design.hashes > 1:
        rows.append(("one person added or removed", design.hashes, central(design)))
    if 2 * design.hashes <= design.bits:
        rows.append(("one person exchanged for another", 2 * design.hashes, central(design, touched=2 * design.hashes)))
    if design.views is None:
        pair = bloom.published_pair_epsilon(filters=design.filters, bits=design.bits, p=design.p, delta=design.delta)
        rows.append(("one column full, or all empty: only these two datasets", 1, replace(pair, witness=None)))
    first = "Adding or removing a person changes one column of the filters. " if design.hashes == 1 else ""
    return Table(
        key="privacy",
        title="Epsilon by what changes in the data",
        caption=(
            f"Epsilon at delta = {design.delta:g}. {first}If several columns change, the upper bound follows from "
            f"group privacy. {_PAIR if design.views is None else ''}Columns have no senders, so there are no figures "
            "on re-identification."
        ),
        columns=("What changes", "Columns", "Epsilon"),
        rows=tuple(rows),
    )


def _central(design: Design) -> Finding:
    bound, law = central(design), design.curve
    times = factor(bound.upper) or "any factor"
    several = f"; upper bound: group privacy over {design.hashes} columns; lower bound: one column"
    return Finding(
        question="central-dp",
        adversary=_RELEASE,
        sentence=(
            f"Whatever else they know, seeing the counts changes the odds that you are in any audience by at most "
            f"{times} (delta = {design.delta:g})."
        ),
        bound=bound,
        proof=f"{law.proof}{several if design.hashes > 1 else ''}{_attained(design)}",
    )


def _attained(design: Design) -> str:
    """The datasets that attain the lower bound, in words; bit patterns start with the first publisher."""
    witness = _epsilon(design, design.hashes).witness
    return "" if witness is None else f"; lower bound at {_columns(witness, design.filters)}"


def _columns(witness: Witness, filters: int) -> str:
    held = [f"{count:,} at {_pattern(value, filters)}" for value, count in enumerate(witness.others) if count]
    first, second = (_pattern(value, filters) for value in witness.target)
    return f"one column {first} against {second}, others {', '.join(held) or 'none'}"


def _pattern(value: int, filters: int) -> str:
    return "".join(str(value >> place & 1) for place in range(filters))


def _member(design: Design) -> Finding:
    """Membership: the adversary's success rate is 1/2 + TV/2 (TV: total variation distance).

    The TV of h columns is at most h times the TV of one column.
    """
    distance = min(design.curve.delta(0.0).upper * design.hashes, 1.0)
    upper, sources = min(math.nextafter(0.5 + distance / 2, 1.0), 1.0), design.curve.sources
    bound = Bound(lower=0.5, upper=upper, kind="upper", unit="probability", sources=sources)
    return Finding(
        question="membership",
        adversary=_STRONG,
        sentence=(
            f"The adversary guesses correctly at most {percent(bound.upper, up=True)} of the time whether you are in "
            "any audience or in none; 50 % without the release."
        ),
        bound=bound,
        proof=(
            "1/2 + d/2 for a uniform prior, where the total variation distance d is delta at epsilon = "
            f"0{f', {design.hashes} times that of one column' if design.hashes > 1 else ''}"
        ),
    )


def _local(design: Design) -> Finding:
    """The guarantee that remains if an observer sees the columns in their original order."""
    local = design.local
    whole = local.upper if design.hashes == 1 else math.nextafter(design.hashes * local.upper, math.inf)
    times = factor(whole)
    return Finding(
        question="local-dp",
        adversary=_SHUFFLER,
        sentence=(
            "Seeing all filters with their columns in order changes the odds that you are in any audience by at most "
            f"{times}. Only the flipped bits protect you in this case."
            if times
            else "Seeing all filters with their columns in order practically reveals your audiences."
        ),
        bound=Bound.exact(whole, unit="nats", sources=local.sources),
        proof=(
            f"{design.filters} x {design.hashes} bits per person, flipped with the implemented p, rounded up"
            if design.views is None
            else "the shuffler gets the bits without noise"
        ),
    )
