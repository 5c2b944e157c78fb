"""Measure an attack and a learner on unshuffled reports, on a Mallows shuffle and on a uniform shuffle of the data."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from hushuffle.attacks import inference
from hushuffle.errors import MissingDependencyError, NumericalError
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import symmetric_law
from hushuffle.mechanisms.shufflers import NoShuffle, UniformShuffle
from hushuffle.model import Bound, Cell, Finding, Groups, Table, Warned
from hushuffle.model.bound import percent
from hushuffle.randomness import Randomness

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

VOTES: Final = 25
DRAWS: Final = 50
LEVEL: Final = 0.9
REPETITIONS: Final = 3
_FEW_VALUES: Final = 4
_NAMES: Final = ("no shuffle", "this shuffle", "uniform shuffle")


@dataclass(frozen=True, kw_only=True, eq=False)
class Scene:
    """The data of an attack and of a learner.

    `near` lists the nearby people of each person. `known`, shape (n, d), is the attacker's knowledge in addition to
    public data (None: nothing). `places`, shape (n, d), are the features of each person for the learner (None: no
    learner is run).
    """

    values: Integers
    labels: tuple[str, ...]
    near: Groups
    known: Floats | None
    places: Floats | None


@dataclass(frozen=True, kw_only=True)
class Measured:
    findings: tuple[Finding, ...]
    tables: tuple[Table, ...]
    warnings: tuple[Warned, ...]


@dataclass(frozen=True, kw_only=True)
class _Score:
    """The share of vulnerable people, in total (`rho`) and by value, and lambda (`error`; None without a learner)."""

    rho: Bound
    by_value: tuple[Bound, ...]
    error: Bound | None


def measured(
    protocol: Protocol, scene: Scene, *, confidence: float, rng: Randomness, done: Callable[[float], None]
) -> Measured:
    """Return the success of the attack and the accuracy of the learner, without and with each shuffle.

    The attack: the reports of the 25 most similar people nearby vote on a person's value. A person is vulnerable if the
    vote is right in 90 % of 50 releases. The learner: gradient-boosted trees trained on one release, corrected for the
    noise. Lambda is the mean total variation distance of the learned shares from the true shares nearby, divided by the
    distance of the uniform guess. Attack and learner are repeated three times, with Student's confidence intervals.

    Source: Meehan et al. 2022, section 5.
    """
    voters = inference.choose_voters(scene.near, scene.known, size=VOTES)
    shufflers = (NoShuffle(), protocol.shuffler, UniformShuffle())
    places, trouble = scene.places, ""
    scores = []
    for step, shuffler in enumerate(shufflers):
        runs, shuffled = [], replace(protocol, shuffler=shuffler)
        for repetition in range(REPETITIONS):
            # The reports that the simulated collections release in each person's place, shape (n, DRAWS).
            released = np.stack([shuffled.collect(scene.values, rng=rng).reports for _ in range(DRAWS)], axis=1)
            rates = inference.success_rates(released, scene.values, voters, k=len(scene.labels), seed=repetition + 1)
            error = None
            if places is not None:
                try:
                    error = _error(protocol, scene, places, released[:, 0])
                except (MissingDependencyError, NumericalError) as problem:
                    places, trouble = None, str(problem)
            runs.append((inference.vulnerable(rates, level=LEVEL), error))
            done((step * REPETITIONS + repetition + 1) / (len(shufflers) * REPETITIONS))
        scores.append(_score(runs, scene, confidence))
    not_learned = Warned(
        key="learnability-not-measured", sentence="The error of learning about places was not measured.", advice=trouble
    )
    warnings = (not_learned,) if trouble else ()
    return Measured(findings=(_finding(scores),), tables=(_table(scores, scene),), warnings=warnings)


def _error(protocol: Protocol, scene: Scene, places: Floats, reports: Integers) -> float:
    law, k = symmetric_law(protocol.randomizer, for_what="Learning from an order"), len(scene.labels)
    learned = inference.learned_shares(places, reports, k=k)
    cleared = inference.without_noise(learned, truth=float(law.truth), lie=float(law.lie))
    return inference.relative_error(cleared, inference.local_shares(scene.values, scene.near, k=k))


def _score(runs: Sequence[tuple[npt.NDArray[np.bool_], float | None]], scene: Scene, confidence: float) -> _Score:
    errors = [error for _, error in runs if error is not None]
    held = [scene.values == value for value in range(len(scene.labels))]
    return _Score(
        rho=_interval([float(found.mean()) for found, _ in runs], confidence, most=1.0),
        by_value=tuple(
            _interval([float(found[who].mean()) if who.any() else 0.0 for found, _ in runs], confidence, most=1.0)
            for who in held
        ),
        error=_interval(errors, confidence, most=math.inf) if len(errors) == len(runs) else None,
    )


def _interval(each: Sequence[float], confidence: float, *, most: float) -> Bound:
    """Student's confidence interval for the mean over the repetitions."""
    mean = float(np.mean(each))
    half = float(stdtrit(len(each) - 1, (1 + confidence) / 2)) * float(np.std(each, ddof=1)) / math.sqrt(len(each))
    lower, upper = max(0.0, mean - half), min(most, mean + half)
    return Bound(lower=lower, upper=upper, kind="estimate", unit="", sources=(inference.ATTACK,), confidence=confidence)


def _finding(scores: Sequence[_Score]) -> Finding:
    before, here, uniform = ((score.rho.lower + score.rho.upper) / 2 for score in scores)
    return Finding(
        question="order-attack",
        adversary="An adversary who guesses by a vote of the 25 most similar people",
        sentence=(
            f"For {percent(here)} of the people, the adversary guesses the person's value right in at least nine of "
            f"ten releases (without a shuffle: {percent(before)}; after a uniform shuffle: {percent(uniform)})."
        ),
        bound=scores[1].rho,
        proof=f"measured on the data: {REPETITIONS} repetitions of {DRAWS} releases, Student's interval",
    )


def _table(scores: Sequence[_Score], scene: Scene) -> Table:
    k = len(scene.labels)
    # The rarest value comes first: guessing the commonest value without data is right for everyone who has it.
    shown = np.argsort(np.bincount(scene.values, minlength=k), kind="stable").tolist() if k <= _FEW_VALUES else []
    learned = all(score.error is not None for score in scores)
    rows: list[tuple[Cell, ...]] = []
    for name, score in zip(_NAMES, scores, strict=True):
        cells: list[Cell] = [name, score.rho]
        cells += [score.error] if learned and score.error is not None else []
        rows.append((*cells, *(score.by_value[value] for value in shown)))
    return Table(
        key="order-attack",
        title="Measured on the data: success of the attack, and error of learning",
        caption=(
            "The attack succeeds if the majority value of the 25 most similar people is the person's in at least nine "
            "of ten releases. Compare with the uniform shuffle, where the majority value is the most frequent value."
        ),
        columns=(
            "release",
            "share of people for whom the attack succeeds",
            *(("error of shares that an analyst learns near each person (uniform guess: 1)",) if learned else ()),
            *(f'share of people with "{scene.labels[value]}" for whom the attack succeeds' for value in shown),
        ),
        rows=tuple(rows),
    )
