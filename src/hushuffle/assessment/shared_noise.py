"""Calibrate the noise of several columns: all local epsilons are multiplied by the same factor."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hushuffle._checks import unsupported
from hushuffle.assessment.columns import all_central, guarantees
from hushuffle.assessment.targets import Proposal
from hushuffle.assessment.targets import targets as held_targets
from hushuffle.assessment.trials import LEAST, error_of
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.model import Bound, Progress, Target, silent
from hushuffle.questions import dp
from hushuffle.questions.dp.calibration import LARGEST_LOCAL, narrowed, with_local_epsilon
from hushuffle.specification import Collection, build_protocol
from hushuffle.specification._base import unfit


@dataclass(frozen=True, kw_only=True)
class ColumnPoint:
    """A column's local epsilon (nats) in the file, its proposed local epsilon, and the resulting standard error.

    The standard error is that of an estimated share, at the worst true share. `central` is the central epsilon of this
    column alone, in all rounds.
    """

    name: str
    written: float
    local_epsilon: float
    central: Bound
    standard_error: float


@dataclass(frozen=True, kw_only=True)
class SharedChoice(Proposal):
    """The largest `factor` for the local epsilons of several columns that the target allows.

    `central` is the resulting central epsilon of all columns and rounds together; `targets` are all targets.
    """

    title: str
    epsilon: float
    delta: float
    rounds: int
    people: int
    factor: float
    central: Bound
    columns: tuple[ColumnPoint, ...]
    targets: tuple[Target, ...]


def calibrate_columns(
    collection: Collection, *, base_folder: Path = Path(), progress: Progress | None = None
) -> SharedChoice:
    """Return the largest common factor for all local epsilons with which the columns together meet targets.epsilon.

    The ratios between the columns' local epsilons do not change. For a column that must be more accurate than others,
    write a larger epsilon into the file. Values in the data are not used.

    Raises:
        SpecificationError: targets.epsilon is missing, no noise meets it, or a column has no finite epsilon.
        DataError, MissingDependencyError: the data cannot be used.

    Source: docs/theory/composition.md, Theorem 3.
    """
    tell = progress or silent
    epsilon = collection.epsilon
    if epsilon is None:
        hint = "Write the largest acceptable central epsilon of all columns, for example epsilon = 0.5."
        unfit("targets.epsilon", "must be given to calibrate", "nothing", hint)
    tell("counting people", 0.0)
    written = {name: _protocol(collection, name, base_folder) for name in collection.columns}
    tell("looking for the least noise", 0.1)

    def total(factor: float) -> Bound:
        return all_central(collection, list(_scaled(written, factor).values()))

    factor = _largest(written, lambda factor: total(factor).upper - epsilon)
    limit, local = collection.whole.targets.local_epsilon, guarantees(collection, list(written.values()), central=None)
    if limit is not None and limit < factor * local[-1].bound.upper:
        factor = limit / local[-1].bound.upper * (1 - 1e-12)  # the implemented local epsilon is rounded up
    chosen = _scaled(written, factor)
    tell("comparing", 0.9)
    central = total(factor)
    points = tuple(
        ColumnPoint(
            name=name,
            written=written[name].randomizer.local_epsilon,
            local_epsilon=protocol.randomizer.local_epsilon,
            central=dp.compose([(protocol, collection.rounds)], delta=collection.delta),
            standard_error=error_of(protocol),
        )
        for name, protocol in chosen.items()
    )
    people = max(protocol.n for protocol in chosen.values())
    tell("done", 1.0)
    return SharedChoice(
        title=collection.title or "Calibration of several columns",
        epsilon=epsilon,
        delta=collection.delta,
        rounds=collection.rounds,
        people=people,
        factor=factor,
        central=central,
        columns=points,
        targets=held_targets(
            collection.whole,
            people=people,
            findings=guarantees(collection, list(chosen.values()), central=central),
            unanswered=(),
            error=Bound.exact(max(point.standard_error for point in points), unit=""),
            alone=False,
        ),
    )


def _protocol(collection: Collection, name: str, base_folder: Path) -> Protocol:
    specification = collection.columns[name]
    people = specification.population.read(base_folder)
    protocol = build_protocol(specification, n=people.n, k=people.k)
    if protocol.randomizer.chosen_epsilon is None or math.isinf(protocol.randomizer.local_epsilon):
        unsupported(f"Column {name} has no finite local epsilon, so its noise cannot be scaled.")
    return protocol


def _scaled(written: Mapping[str, Protocol], factor: float) -> dict[str, Protocol]:
    return {
        name: with_local_epsilon(protocol, protocol.randomizer.local_epsilon * factor)
        for name, protocol in written.items()
    }


def _largest(written: Mapping[str, Protocol], excess: Callable[[float], float]) -> float:
    """Return the largest factor without excess, limited so that no local epsilon exceeds the largest possible."""
    own = [protocol.randomizer.local_epsilon for protocol in written.values()]
    least, most = LEAST / min(own), LARGEST_LOCAL / max(own)
    good = bad = min(1.0, most)
    while excess(good) > 0:
        if good <= least:
            rule = "must be a value that some amount of noise achieves"
            unfit("targets.epsilon", rule, "less than any", "Allow a larger one.")
        bad, good = good, max(good / 2, least)
    while bad <= good:
        if good >= most:
            return most
        bad = min(2 * good, most)
        if excess(bad) <= 0:
            good = bad
    return narrowed(excess, good, bad, whole=False)[0]
