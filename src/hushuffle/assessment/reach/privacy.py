"""The `Design` of a reach study, and what its release says about one person: findings, and a table of figures."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

from hushuffle.assessment.findings import Questions
from hushuffle.assessment.odds import factor
from hushuffle.curves.divergence import divergence
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import BitFlipping
from hushuffle.mechanisms.shufflers import UniformShuffle
from hushuffle.model import Bound, Cell, Finding, Table, Witness
from hushuffle.model.bound import percent
from hushuffle.questions import bloom, dp

_RELEASE: Final = "Anyone who sees the released counts"
_STRONG: Final = "Somebody who knows everyone else's audiences, and the key"
_SHUFFLER: Final = "A broken or dishonest shuffler that has the key"


@dataclass(frozen=True, kw_only=True)
class Design:
    """Filters of the publishers `names`, their bits and hash functions, the flip probability, and delta."""

    names: tuple[str, ...]
    bits: int
    hashes: int
    p: float
    delta: float

    @property
    def filters(self) -> int:
        """Number of filters."""
        return len(self.names)

    @property
    def protocol(self) -> Protocol:
        """The collection of columns: each of them is what a person's report is elsewhere."""
        return Protocol(randomizer=BitFlipping(width=self.filters, p=self.p), shuffler=UniformShuffle(), n=self.bits)


def central(design: Design, *, touched: int | None = None) -> Bound:
    """Return epsilon for what `touched` columns change (None: those of one person).

    The witness of the lower bound is left out: its values are columns, which no label names.
    """
    return replace(_epsilon(design, touched or design.hashes), witness=None)


@lru_cache(maxsize=64)
def _epsilon(design: Design, touched: int) -> Bound:
    return bloom.epsilon(filters=design.filters, bits=design.bits, p=design.p, delta=design.delta, hashes=touched)


def findings(questions: Questions, design: Design) -> tuple[Finding, ...]:
    """Return one row for each adversary; the first is the central guarantee of one person."""
    rows = (
        questions.ask("central-dp", _RELEASE, lambda: _central(design)),
        questions.ask("membership", _STRONG, lambda: _member(design)),
        questions.ask("local-dp", _SHUFFLER, lambda: _local(design)),
    )
    return tuple(row for row in rows if row is not None)


def table(design: Design) -> Table:
    """Return epsilon of one column, of one person added, of one exchanged, and of the published pair."""
    column = central(design, touched=1)
    pair = bloom.published_pair_epsilon(filters=design.filters, bits=design.bits, p=design.p, delta=design.delta)
    rows: list[tuple[Cell, ...]] = [("one column of bits", 1, column)]
    if design.hashes > 1:
        rows.append(("one person added or removed", design.hashes, central(design)))
    if 2 * design.hashes <= design.bits:
        rows.append(("one person exchanged for another", 2 * design.hashes, central(design, touched=2 * design.hashes)))
    rows.append(("the paper's pair only: no guarantee", 1, replace(pair, witness=None)))
    first = "A person added or removed touches one column, in any of the filters. " if design.hashes == 1 else ""
    return Table(
        key="privacy",
        title="What the guarantee is for",
        caption=(
            f"Epsilon at delta = {design.delta:g}. {first}Where several columns change, the upper bound is group "
            "privacy. The paper's pair has all columns empty, against one of them full: often the worst, no guarantee. "
            "Nobody sends a column, so that no figure says whose one is."
        ),
        columns=("What changes", "Columns", "Epsilon"),
        rows=tuple(rows),
    )


def _central(design: Design) -> Finding:
    bound, law = central(design), divergence(design.protocol)
    times = factor(bound.upper) or "any factor"
    several = f"; group privacy over {design.hashes} columns (upper bound), one column (lower bound)"
    return Finding(
        question="central-dp",
        adversary=_RELEASE,
        sentence=(
            f"Whatever else they know, seeing it changes the odds that you are in any audience by at most "
            f"{times} (delta = {design.delta:g})."
        ),
        bound=bound,
        proof=f"{law.proof}{several if design.hashes > 1 else ''}{_attained(design)}",
    )


def _attained(design: Design) -> str:
    """Say in words at which pair of datasets the lower bound is attained; logos as bits, first publisher first."""
    witness = _epsilon(design, design.hashes).witness
    return "" if witness is None else f"; lower bound at {_columns(witness, design.filters)}"


def _columns(witness: Witness, filters: int) -> str:
    held = [f"{count:,} at {_logo(value, filters)}" for value, count in enumerate(witness.others) if count]
    first, second = (_logo(value, filters) for value in witness.target)
    return f"one column {first} against {second}, others {', '.join(held) or 'none'}"


def _logo(value: int, filters: int) -> str:
    return "".join(str(value >> place & 1) for place in range(filters))


def _member(design: Design) -> Finding:
    """Return how often membership is guessed right: 1/2 + TV/2; TV over h columns is at most h times that of one."""
    distance = min(dp.delta(design.protocol, epsilon=0.0).upper * design.hashes, 1.0)
    bound = Bound(
        lower=0.5,
        upper=min(math.nextafter(0.5 + distance / 2, 1.0), 1.0),
        kind="upper",
        unit="probability",
        sources=divergence(design.protocol).sources,
    )
    return Finding(
        question="membership",
        adversary=_STRONG,
        sentence=(
            f"Guesses whether you are in any audience, or in none, right at most {percent(bound.upper, up=True)} of "
            "the time; 50 % without the release."
        ),
        bound=bound,
        proof=(
            "1/2 + (total variation distance)/2 for a fair coin, the distance being delta at epsilon = 0"
            f"{f', {design.hashes} times that of one column' if design.hashes > 1 else ''}"
        ),
    )


def _local(design: Design) -> Finding:
    """Return what is left if the columns are seen in their order: every touched bit tells."""
    one = dp.local_epsilon(design.protocol)
    whole = one.upper if design.hashes == 1 else math.nextafter(design.hashes * one.upper, math.inf)
    times = factor(whole)
    return Finding(
        question="local-dp",
        adversary=_SHUFFLER,
        sentence=(
            "Who sees all filters with their columns in order, and looks up yours, changes the odds that you are in "
            f"any audience by at most {times}: the flips alone protect you there."
            if times
            else "Who sees all filters with their columns in order, and looks up yours, can practically read them."
        ),
        bound=Bound.exact(whole, unit="nats", sources=one.sources),
        proof=f"{design.filters} x {design.hashes} bits of one person, each flipped with the implemented p, rounded up",
    )
