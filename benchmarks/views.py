"""Standard errors of reach from views of columns with dummies, at an advertisers' scale: python benchmarks/views.py

Assumed: equal audiences in the model of `assumed_reach`, 30 % of the people each, before they are scaled so that all
publishers together reach half as many people as there are columns.
"""

from __future__ import annotations

import math
import resource
import sys
import time
from collections.abc import Callable
from itertools import combinations

import numpy as np

import hushuffle as hs
from hushuffle.errors import NumericalError
from hushuffle.estimation.column_views import assumed_reach, people, planned_people
from hushuffle.estimation.reach import planned
from hushuffle.numerics.normal_pair import shift_between
from hushuffle.specification.reach import assumed_people

DELTA = 1e-12
EPSILONS = (0.0033, 0.01, 0.05, 0.5)
SIZES = ((3, 10**7), (6, 10**7), (10, 10**7), (20, 10**7), (3, 10**8), (6, 10**8), (10, 10**8), (20, 10**8))


def audiences(publishers: int, columns: int) -> Callable[[tuple[int, ...]], float]:
    """Return the assumed reach of each union; that of all publishers is half the number of columns."""
    model = assumed_reach(10**6, [3e5] * publishers)
    factor = columns / 2 / model(tuple(range(publishers)))
    return lambda chosen: model(chosen) * factor


def wanted(publishers: int, columns: int, what: str) -> dict[tuple[int, ...], float]:
    """Wanted errors: the union of all is ten times as important as the union of one or of two publishers."""
    everyone, error = tuple(range(publishers)), 4 * columns**0.5
    unions = {everyone: error}
    for size in range(1, 1 + ("all", "singles", "pairs", "contacts").index(what) % 3):
        unions |= {chosen: 10 * error for chosen in combinations(range(publishers), size) if chosen != everyone}
    return unions


def plans() -> None:
    print(
        "publishers, columns, epsilon, answers: certified epsilon; sigma of all, one, two publishers; dummies; seconds"
    )
    print("contacts: of all, and of the people with one number of contacts, 1 to 5, of a tenth of the columns each")
    for publishers, columns in SIZES:
        for epsilon in EPSILONS:
            for what in ("all", "singles", "pairs", "contacts"):
                start, text = time.process_time(), f"{publishers}, {columns:.0e}, {epsilon}, {what}"
                try:
                    plan = hs.bloom.plan_views(
                        publishers=publishers,
                        columns=columns,
                        reach=audiences(publishers, columns),
                        epsilon=epsilon,
                        delta=DELTA,
                        unions=wanted(publishers, columns, what),
                        contacts=[columns / 10] * 5 if what == "contacts" else (),
                        contacts_error=40 * columns**0.5,
                    )
                except NumericalError as error:
                    print(f"{text}: {error}", flush=True)
                    continue
                errors = {len(answer.publishers): answer.standard_error for answer in plan.answers}
                shown = ", ".join(f"{errors[size]:,.0f}" for size in (publishers, 1, 2) if size in errors)
                if plan.contacts is not None:
                    shown += f", {plan.contacts.standard_errors.max():,.0f}"
                views = f"{len(plan.design.views)} views, last {plan.design.views[-1].shows}"
                low, high = plan.epsilon.lower, plan.epsilon.upper
                spent = time.process_time() - start
                print(
                    f"{text}: {low:.6f} to {high:.6f}; {shown}; {plan.design.dummies:.3g}; {spent:.1f} ({views})",
                    flush=True,
                )


def comparison() -> None:
    """Compare with one Gaussian count per answer from a disjoint sample of 1/60 of the people, at equal epsilon.

    These are the public parameters of Halo (cross-media-measurement, issue 4206: epsilon 0.0033 to 0.0041, delta 1e-12,
    samples of 1 to 1.67 %, standard error 102,000 to 120,000). 60 disjoint samples give 60 answers.
    """
    everyone = tuple(range(10))
    sets = [chosen for size in range(10, 0, -1) for chosen in combinations(range(10), size)][:60]
    for epsilon in (0.0033, 0.0041):
        count = 1 / float(shift_between(epsilon, DELTA))
        print(f"epsilon {epsilon}: Gaussian count {count:,.0f}; from 1/60 of the people {60 * count:,.0f}")
        laplace, several = math.sqrt(2) / epsilon, math.sqrt(60) * count
        print(f"  all people, one Laplace count {laplace:,.0f}; 60 Gaussian counts, composed {several:,.0f}")
        for unions in ([everyone], sets):
            plan = hs.bloom.plan_views(
                publishers=10,
                columns=10**7,
                reach=lambda _: 5e6,
                epsilon=epsilon,
                delta=DELTA,
                unions=dict.fromkeys(unions, 20_000.0),
            )
            worst = max(answer.standard_error for answer in plan.answers)
            print(f"  {len(unions)} answers in one release of views: {worst:,.0f}; {plan.design.dummies:.3g} dummies")


def flips() -> None:
    """Compare flipped filters of three publishers with the bit patterns of true columns, at equal epsilon."""
    columns, epsilon, reach = 10**7, 0.0033, audiences(3, 10**7)
    least = hs.bloom.estimate_flip_prob(filters=3, bits=columns, epsilon=epsilon, delta=DELTA)
    everyone = assumed_people(10**7, [3 * 10**6] * 3)
    shares = everyone * (reach((0, 1, 2)) / everyone.sum())
    protocol = hs.Protocol(randomizer=hs.BitFlipping(width=3, p=least.p), shuffler=hs.UniformShuffle(), n=columns)
    print(f"three publishers, flips: {planned(shares, protocol=protocol)}")
    law = hs.DummyLaw.discrete_laplace(center=24_500, scale=607.0)
    view = hs.ColumnView(publishers=(0, 1, 2), shows="patterns", each=law)
    design = hs.ColumnViews(publishers=3, columns=columns, views=(view,))
    bound = hs.bloom.views_epsilon(design, delta=DELTA)
    print(f"three publishers, dummies, epsilon {bound.upper:.4f}: {planned_people(design, reach=reach)}")


def release() -> None:
    """Release 10**8 columns of 20 publishers in chunks, and estimate the union."""
    publishers, columns, chunk = 20, 10**8, 10**7
    plan = hs.bloom.plan_views(
        publishers=publishers,
        columns=columns,
        reach=audiences(publishers, columns),
        epsilon=0.0033,
        delta=DELTA,
        unions=wanted(publishers, columns, "all"),
    )
    rng, start = np.random.default_rng(1), time.process_time()
    chunks = (_random_columns(rng, chunk, publishers) for _ in range(columns // chunk))
    seen = plan.design.release(chunks)
    print(f"release of {columns:,} columns: {time.process_time() - start:.1f} s with their generation; {people(seen)}")


def _random_columns(
    rng: np.random.Generator, columns: int, publishers: int
) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """Bit patterns of columns that hold 0.5 people on average, each in one or more audiences."""
    held = rng.integers(1, 1 << publishers, size=columns, dtype=np.int32)
    held[rng.random(columns) < np.exp(-0.5)] = 0
    return held


if __name__ == "__main__":
    release()
    comparison()
    flips()
    if "--release" not in sys.argv:
        plans()
    print(f"largest memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB")
