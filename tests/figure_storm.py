"""Random calls of the public functions, and what their figures may not contradict: `oracles.cheap_truths`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

import hushuffle as hs
from hushuffle.errors import NumericalError, UnsupportedProtocolError
from hushuffle.mechanisms.randomizers import symmetric_law
from hushuffle.model import Bound
from oracles import cheap_truths as truths

ROUNDING = 1e-6
"""Relative: what `between` lets two ends cross by."""

TRACE = 1e-14
"""Absolute, of a probability: below, floats next to 1 have no digits left."""


@dataclass(frozen=True)
class Case:
    protocol: hs.Protocol
    laws: tuple[truths.Classes, ...]
    others: int | None
    """How many reports beside the target's; None if their chances in a class are not known."""


def case(rng: np.random.Generator, *, quick: bool) -> Case:
    kind = rng.choice(["bits", "bits", "answers", "matrix", "targets"])
    n = int(rng.choice([1, 1, 2, 3, 10, 1000]))
    dummies = int(rng.choice([0, 0, 1, 5]))
    if quick and kind in ("bits", "matrix"):  # a sum over the number of dummies takes seconds there
        dummies = 0
    shuffler: Any = hs.Scrambler(dummies=dummies) if dummies else hs.UniformShuffle()
    if rng.random() < 0.1:
        shuffler, dummies = hs.NoShuffle(), 0
    randomizer, laws = {"bits": _bits, "answers": _answers, "matrix": _matrix, "targets": _targets}[str(kind)](rng)
    protocol = hs.Protocol(randomizer=randomizer, shuffler=shuffler, n=n)
    # Dummies follow another law than c's.
    return Case(protocol, tuple(laws), None if dummies else 0 if isinstance(shuffler, hs.NoShuffle) else n - 1)


def _bits(rng: np.random.Generator) -> tuple[Any, list[truths.Classes]]:
    width = int(rng.choice([1, 2, 3, 5, 8, 16, 24, 25, 32, 62]))
    p = float(min(math.exp(rng.uniform(math.log(2.0**-64), math.log(0.5))), 0.49))
    randomizer = hs.BitFlipping(width=width, p=p)
    return randomizer, [truths.flipped_bits(width, randomizer.flip)]


def _answers(rng: np.random.Generator) -> tuple[Any, list[truths.Classes]]:
    k = int(rng.choice([2, 3, 4, 20]))
    randomizer = hs.RandomizedResponse(k=k, epsilon=float(math.exp(rng.uniform(-9, math.log(44)))))
    return randomizer, [truths.randomized_response(k, randomizer.law().truth)]


def _targets(rng: np.random.Generator) -> tuple[Any, list[truths.Classes]]:
    k = int(rng.choice([2, 3, 20]))
    sigma = float(rng.choice([math.exp(rng.uniform(-40, -0.01)), 1 - math.exp(rng.uniform(-20, -1))]))
    randomizer = hs.TargetSampling(targets=k, sigma=sigma)
    return randomizer, [truths.randomized_response(k, symmetric_law(randomizer, for_what="a test").truth)]


def _matrix(rng: np.random.Generator) -> tuple[Any, list[truths.Classes]]:
    k, outputs = int(rng.integers(2, 4)), int(rng.integers(2, 5))
    rows = rng.dirichlet(np.full(outputs, 0.8), size=k)
    change = rng.random()
    if change < 0.5:  # entries of all sizes
        rows = rows * np.exp(-rng.uniform(0, 80, size=rows.shape) * (rng.random(rows.shape) < 0.5))
    elif change < 0.7:
        rows = np.where(rng.random(rows.shape) < 0.3, 0.0, rows) + 1e-9
    rows /= rows.sum(axis=1, keepdims=True)
    randomizer = hs.MatrixRandomizer(channel=hs.Channel(matrix=rows))
    return randomizer, truths.matrix(randomizer.channel().matrix.tolist())


def check(seed: int, *, composed: bool = True) -> tuple[int, list[str]]:
    """Return how many figures were compared, and what was wrong with any; without compositions it takes less time."""
    rng = np.random.default_rng(seed)
    first, second = (case(rng, quick=not composed) for _ in range(2))
    delta = float(np.exp(-rng.uniform(0.5, 25)))
    pure = min(first.protocol.randomizer.local_epsilon, 400.0)
    epsilon = float(rng.choice([0.0, rng.uniform(0, 1.1) * pure, math.exp(rng.uniform(-6, 2))]))
    times = int(rng.choice([2, 3, 40]))
    found = _Findings(f"seed {seed}: {first.protocol!r}, delta={delta!r}, epsilon={epsilon!r}, times={times}")
    alone = found.of("epsilon", lambda: hs.dp.epsilon(first.protocol, delta=delta))
    spread = found.of("delta", lambda: hs.dp.delta(first.protocol, epsilon=epsilon))
    found.epsilon("epsilon", alone, first, delta)
    found.delta("delta", spread, first, epsilon)
    if alone is not None:
        found.expect("epsilon above epsilon_0", alone.upper <= first.protocol.randomizer.local_epsilon * (1 + 1e-9))
    if isinstance(first.protocol.randomizer, hs.BitFlipping) and isinstance(first.protocol.shuffler, hs.UniformShuffle):
        flips = first.protocol.randomizer
        arguments: Any = {"filters": flips.width, "bits": first.protocol.n, "p": flips.p, "delta": delta}
        found.same("bloom", alone, found.of("bloom", lambda: hs.bloom.epsilon(**arguments)))
    if isinstance(first.protocol.randomizer, hs.TargetSampling) and isinstance(first.protocol.shuffler, hs.Scrambler):
        sampling = first.protocol.randomizer
        behind: Any = (sampling.targets, first.protocol.n, sampling.sigma, first.protocol.shuffler.dummies)
        found.same("traffic", alone, found.of("traffic", lambda: hs.traffic.scrambler_epsilon(*behind, delta=delta)))
    if not composed:
        return found.compared, found.wrong
    sizes = [math.log(one.protocol.randomizer.local_epsilon) for one in (first, second)]
    # Rounds of very different sizes need long lattices, which take seconds.
    if rng.random() < 0.5 or abs(sizes[0] - sizes[1]) > 3:
        rounds, laws = [(first.protocol, times)], [first]
    else:
        rounds, laws = [(first.protocol, 1), (second.protocol, 1)], [first, second]
    together = found.of("compose", lambda: hs.dp.compose(rounds, delta=delta))
    # About where `compose` ends: far beyond, curves are tabulated down to next to nothing, which takes seconds.
    level = epsilon if together is None else min(epsilon, together.upper, 600.0)
    joint = found.of("compose_delta", lambda: hs.dp.compose_delta(rounds, epsilon=level))
    for one in laws:
        found.at_least("compose", together, one, delta)
        found.delta("compose_delta", joint, one, level, many=True)
    if together is not None:
        total = sum(count * protocol.randomizer.local_epsilon for protocol, count in rounds)
        found.expect("compose above the sum", together.upper <= total * (1 + 1e-9))
    if together is not None and alone is not None:
        found.expect("compose below one round", together.upper >= alone.lower * (1 - ROUNDING))
        found.expect("compose's lower below one round's", together.lower >= alone.lower * (1 - 1e-4) - 1e-12)
    if together is not None and len(laws) == 1:
        share = found.of("epsilon", lambda: hs.dp.epsilon(first.protocol, delta=delta / times))
        if share is not None:
            found.expect("compose above the plain sum", together.upper <= times * share.upper * (1 + 1e-6) + 1e-12)
    return found.compared, found.wrong


class _Findings:
    def __init__(self, name: str) -> None:
        self.name, self.compared, self.wrong = name, 0, []  # type: tuple[str, int, list[str]]

    def of(self, what: str, call: Any) -> Bound | None:
        try:
            bound: Bound = call()
        except UnsupportedProtocolError:
            return None
        except NumericalError as error:
            self.expect(f"{what}: {error}", "so one of them is wrong" not in str(error))
            return None
        self.expect(f"{what}: {bound!r} is out of order", 0 <= bound.lower <= bound.upper)
        if bound.unit == "probability":
            self.expect(f"{what}: {bound!r} is no probability", bound.upper <= 1)
        return bound

    def expect(self, what: str, holds: bool) -> None:
        self.compared += 1
        if not holds:
            self.wrong.append(f"{what}, {self.name}")

    def same(self, what: str, first: Bound | None, second: Bound | None) -> None:
        ends = [None if bound is None else (bound.lower, bound.upper) for bound in (first, second)]
        self.expect(f"{what}: {ends}", ends[0] == ends[1])

    def delta(self, what: str, bound: Bound | None, one: Case, epsilon: float, *, many: bool = False) -> None:
        if bound is None:
            return
        growth = truths.growth_of(epsilon)
        if one.others is not None:
            least = float(truths.least_delta(one.laws, growth, one.others))
            self.expect(f"{what}: {bound!r} is below {least!r}", bound.upper >= least * (1 - 1e-9) - TRACE)
        if not many:
            most = float(truths.local_delta(one.laws, growth))
            self.expect(f"{what}: {bound!r} is above {most!r}", bound.lower <= most * (1 + ROUNDING) + TRACE)
            self.expect(f"{what}: {bound!r} exceeds {most!r}", bound.upper <= most * (1 + ROUNDING) + TRACE)

    def at_least(self, what: str, bound: Bound | None, one: Case, delta: float) -> None:
        """At its upper end the divergence must be down to delta."""
        if bound is None or one.others is None or math.isinf(bound.upper) or bound.upper > 700:
            return
        least = float(truths.least_delta(one.laws, truths.growth_of(bound.upper * (1 + 1e-12)), one.others))
        self.expect(f"{what}: {bound!r} leaves {least!r}", least <= delta * (1 + 1e-6) + TRACE)

    def epsilon(self, what: str, bound: Bound | None, one: Case, delta: float) -> None:
        self.at_least(what, bound, one, delta)
        if bound is not None and 0 < bound.lower < 700:
            most = float(truths.local_delta(one.laws, truths.growth_of(bound.lower * (1 - 1e-9))))
            self.expect(f"{what}: {bound!r} claims more than {most!r}", most >= delta * (1 - 1e-6) - TRACE)
