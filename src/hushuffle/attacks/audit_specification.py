"""Audit the deployment that a specification describes: test all claims and play all games that apply to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from hushuffle.attacks.audit_study import audit_deployment, audit_games
from hushuffle.attacks.games import Named, filter_games
from hushuffle.attacks.order_games import order_games
from hushuffle.attacks.round_games import round_games
from hushuffle.model import Progress, Report, silent
from hushuffle.randomness import Randomness
from hushuffle.specification import Specification, build_adversaries, build_protocol
from hushuffle.specification.order_setup import arranged
from hushuffle.specification.reach import ReachPopulation

_HOUSEHOLD: Final = 2
"""Default size of the household whose reports the adversary tries to identify."""


def audit_specification(
    specification: Specification,
    *,
    base_folder: Path = Path(),
    delta: float | None = None,
    trials: int | None = None,
    confidence: float = 0.95,
    rng: Randomness | None = None,
    progress: Progress | None = None,
) -> Report:
    """Audit a survey by its claims and all games."""
    people = specification.population.read(base_folder)
    arrangement = arranged(specification, people, base_folder)
    shuffler = None if arrangement is None else arrangement.shuffler
    protocol = build_protocol(specification, n=people.n, k=people.k, shuffler=shuffler)
    honest = protocol.secret
    rounds = round_games(honest, rounds=specification.rounds or 1, memoised=specification.memoised is True)
    reader = build_adversaries(specification).order
    household = _HOUSEHOLD if reader is None else reader.household
    order: list[Named] = order_games(honest, None if arrangement is None else arrangement.groups, household=household)
    return audit_deployment(
        protocol,
        delta=specification.targets.delta if delta is None else delta,
        trials=trials,
        confidence=confidence,
        rng=rng,
        labels=people.population.labels,
        further=[*rounds, *order],
        progress=progress,
    )


def audit_columns(
    columns: Mapping[str, Specification],
    *,
    base_folder: Path = Path(),
    delta: float | None = None,
    trials: int | None = None,
    confidence: float = 0.95,
    rng: Randomness | None = None,
    progress: Progress | None = None,
) -> Report:
    """Audit each column by itself: a true claim of any column is refuted with probability at most 1 - `confidence`.

    Columns are shuffled independently, so the claim of all columns together follows from the claims that are tested.
    """
    tell, each, studies = progress or silent, 1 - (1 - confidence) / len(columns), {}
    for place, (name, specification) in enumerate(columns.items()):
        studies[name] = audit_specification(
            specification,
            base_folder=base_folder,
            delta=delta,
            trials=trials,
            confidence=each,
            rng=rng,
            progress=_part(tell, name, place, len(columns)),
        )
    first = next(iter(studies.values()))
    asked, sign, _ = first.question.partition("? ")
    about = [f"{name}: {study.question.removeprefix(asked + sign)}" for name, study in studies.items()]
    alike = all(study.answers == first.answers for study in studies.values())
    own = (f"{name}: {answer}" for name, study in studies.items() for answer in study.answers)
    return replace(
        first,
        question=" ".join([f"{asked}?", *about]),
        answers=(
            *(first.answers if alike else own),
            "Columns are audited one by one. The guarantee of all columns together is composed from theirs, and is "
            "not tested by itself.",
        ),
        tables=tuple(
            replace(table, key=f"{table.key}-{place}", title=f"{name}: {table.title}")
            for place, (name, study) in enumerate(studies.items())
            for table in study.tables
        ),
        charts=tuple(
            replace(chart, key=f"{chart.key}-{place}", title=f"{name}: {chart.title}")
            for place, (name, study) in enumerate(studies.items())
            for chart in study.charts
        ),
        unanswered=tuple(
            replace(row, topic=f"{name}: {row.topic}") for name, study in studies.items() for row in study.unanswered
        ),
        settings=(("confidence", f"{confidence:g}"),),
        citations=tuple(dict.fromkeys(source for study in studies.values() for source in study.citations)),
    )


def _part(tell: Progress, name: str, place: int, columns: int) -> Progress:
    return lambda what, share: tell(f"{name}: {what}", (place + share) / columns)


def audit_reach(
    specification: Specification,
    *,
    base_folder: Path = Path(),
    trials: int | None = None,
    confidence: float = 0.95,
    rng: Randomness | None = None,
    progress: Progress | None = None,
) -> Report:
    """Audit a reach study by the membership-inference game on its filters.

    >>> from hushuffle.randomness import reproducible
    >>> from hushuffle.specification import parse
    >>> study = parse('''
    ...     population = { people = 100, audiences = { tv = 30, web = 20 }, bits = 100 }
    ...     randomizer = { kind = "bit-flipping", p = 0.25 }
    ...     shuffler = { kind = "uniform" }
    ...     targets = { delta = 1e-3 }
    ... ''')
    >>> audit_reach(study, rng=reproducible(1)).tables[0].rows[0][:3]
    ('whether a person is in every audience or in none', 'knows all other members and the hash key', 'not refuted')
    """
    population = specification.population
    assert isinstance(population, ReachPopulation)  # the caller knows which kind it is
    p = population.flips(specification.randomizer, specification.targets)
    met = population.meet(base_folder)
    named = filter_games(audiences=met.people, bits=population.bits, p=p, hashes=population.hashes)
    messages = population.bits * len(population.names)
    about = f"{len(population.names)} Bloom filters of {population.bits:,} bits, each flipped with p = {p:g}."
    return audit_games(
        named, about=about, messages=messages, trials=trials, confidence=confidence, rng=rng, progress=progress
    )
