"""Time and tightness of the central accountant, next to published bounds and dp-accounting.

    python benchmarks/accountant.py [--write]

Prints the page docs/reference/accountant-benchmark.md, or writes it with --write. Times are ratios to sorting 10^7
floats in the same run, so that they apply to other machines. Takes about two minutes.
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from dp_accounting.pld import privacy_loss_distribution

import hushuffle as hs
from hushuffle.questions.dp import published

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "accountant-benchmark.md"
DELTA = 1e-6
GRID = tuple(itertools.product((2, 10), (10**3, 10**7), (1.0, 3.0)))
COMPARED = {
    "Hoeffding": published.hoeffding_epsilon,
    "Bennett": published.bennett_epsilon,
    "any randomizer": published.any_randomizer_epsilon,
    "clones": published.clones_epsilon,
    "clones, closed": published.clones_closed_form,
    "stronger clones, closed": published.stronger_clones_closed_form,
}


def survey(k: int, n: int, epsilon: float) -> hs.Protocol:
    return hs.Protocol(randomizer=hs.RandomizedResponse(k=k, epsilon=epsilon), shuffler=hs.UniformShuffle(), n=n)


def seconds(work: Callable[[], object], runs: int = 1) -> float:
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---:|" * len(head)
    yield from ("| " + " | ".join(row) + " |" for row in rows)
    yield ""


def grid(unit: float) -> Iterator[str]:
    rows = []
    for k, n, epsilon in GRID:
        protocol = survey(k, n, epsilon)
        start = time.perf_counter()
        bound = hs.dp.epsilon(protocol, delta=DELTA)
        taken = time.perf_counter() - start
        others = [function(protocol, delta=DELTA).upper / bound.upper for function in COMPARED.values()]
        rows.append(
            [
                f"{k}",
                f"10^{round(math.log10(n))}",
                f"{epsilon:g}",
                f"{bound.lower:.6g}",
                f"{bound.upper:.6g}",
                f"{taken / unit:.2f}",
                *(f"{ratio:.2f}" for ratio in others),
            ]
        )
    head = ["k", "n", "ε₀", "lower ε", "upper ε", "time", *COMPARED]
    yield from table(head, rows)


def columns(count: int) -> hs.Bound:
    return hs.dp.compose([(survey(5, 10_000, 1 + place / 32), 1) for place in range(count)], delta=DELTA)


def mebibytes(work: Callable[[], object]) -> float:
    """Return the most memory that `work` takes at once."""
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def growth() -> Iterator[str]:
    people = [10**power for power in range(3, 10)]
    cases: dict[str, tuple[Callable[[int], object], list[int]]] = {
        "n (k=2)": (lambda n: hs.dp.epsilon(survey(2, n, 2.0), delta=DELTA), people),
        "n (k=10)": (lambda n: hs.dp.epsilon(survey(10, n, 2.0), delta=DELTA), people),
        "k (n=10^5)": (lambda k: hs.dp.epsilon(survey(k, 10**5, 2.0), delta=DELTA), [10, 100, 1000, 10_000]),
        "rounds": (lambda times: hs.dp.compose([(survey(5, 10_000, 2.0), times)], delta=DELTA), [4, 16, 64, 256]),
        "columns": (columns, [2, 4, 8, 16]),
    }
    rows = []
    for name, (work, sizes) in cases.items():
        times = [1000 * seconds(partial(work, size), 3) for size in sizes]
        memory = [mebibytes(partial(work, size)) for size in sizes]
        slopes = [f"{np.polyfit(np.log(sizes), np.log(values), 1)[0]:+.2f}" for values in (times, memory)]
        rows.append([name, f"{sizes[0]:,}…{sizes[-1]:,}", f"{times[0]:.3g}…{times[-1]:.3g}", *slopes])
    yield from table(["what grows", "range", "ms", "slope", "memory's"], rows)


def widths() -> Iterator[str]:
    noises = (0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    sizes = {"n = 10^2": [10**2], "n = 10^3": [10**3], "n = 10^4 to 10^9": [10**power for power in range(4, 10)]}
    rows = []
    for k in (2, 10):
        widest = []
        for people in sizes.values():
            bounds = [hs.dp.epsilon(survey(k, n, noise), delta=DELTA) for n in people for noise in noises]
            widest.append(f"{max(bound.width / bound.upper for bound in bounds):.0e}")
        rows.append([f"{k}", *widest])
    yield from table(["k", *sizes], rows)


def pair_at_all_zeros(n: int, epsilon: float) -> tuple[dict[int, float], dict[int, float]]:
    """Laws of the number of ones: k = 2, all others zero, the target one or zero."""
    law = hs.RandomizedResponse(k=2, epsilon=epsilon).law()
    truth, lie = float(law.truth), float(law.lie)
    ones = np.arange(n)
    logs = np.array([math.lgamma(n) - math.lgamma(x + 1) - math.lgamma(n - x) for x in range(n)])
    others = np.exp(logs + ones * math.log(lie) + (n - 1 - ones) * math.log(truth))
    first, second = np.convolve(others, [1 - truth, truth]), np.convolve(others, [truth, 1 - truth])
    return dict(enumerate(map(float, first))), dict(enumerate(map(float, second)))


def six(bound: hs.Bound) -> str:
    return f"{math.floor(1e6 * bound.lower) / 1e6:.6f} to {math.ceil(1e6 * bound.upper) / 1e6:.6f}"


def with_dp_accounting() -> Iterator[str]:
    """The same questions, where dp-accounting can express them: one person; one pair of datasets."""
    rows = []
    for k, epsilon, delta in ((2, 1.0, 1e-6), (10, 3.0, 0.3)):
        law = hs.RandomizedResponse(k=k, epsilon=epsilon).law()
        theirs = privacy_loss_distribution.from_randomized_response(
            float(law.gamma), k, value_discretization_interval=1e-4
        ).get_epsilon_for_delta(delta)
        ours = hs.dp.epsilon(survey(k, 1, epsilon), delta=delta)
        rows.append([f"one person, k = {k}, ε₀ = {epsilon:g}", f"{delta:g}", six(ours), f"{theirs:.6f}"])
    for n, epsilon in ((100, 1.0), (5000, 2.0)):
        first, second = pair_at_all_zeros(n, epsilon)
        built = privacy_loss_distribution.from_two_probability_mass_functions(
            {x: math.log(p) for x, p in first.items() if p > 0},
            {x: math.log(p) for x, p in second.items() if p > 0},
            symmetric=False,
            value_discretization_interval=1e-4,
        )
        theirs = built.get_epsilon_for_delta(DELTA)
        ours = hs.dp.epsilon(survey(2, n, epsilon), delta=DELTA)
        name = f"k = 2, n = {n:,}, ε₀ = {epsilon:g}; all others zero"
        rows.append([name, f"{DELTA:g}", six(ours), f"{theirs:.6f}"])
    yield from table(["question", "δ", "dp.epsilon", "dp-accounting"], rows)


def several_rounds(unit: float) -> Iterator[str]:
    """Brackets of composed rounds, for one mechanism of each kind."""
    matrix = hs.MatrixRandomizer(channel=hs.Channel(matrix=[[0.5, 0.2, 0.3], [0.1, 0.7, 0.2], [0.3, 0.3, 0.4]]))
    shuffled, n = hs.UniformShuffle(), 10_000
    cases = {
        "2 values, ε₀ = 2": (survey(2, n, 2.0), (100,)),
        "5 values, ε₀ = 2": (survey(5, n, 2.0), (100,)),
        "a 3 by 3 matrix": (hs.Protocol(randomizer=matrix, shuffler=shuffled, n=n), (100, 1000)),
        "local hashing, k = 50, g = 4, ε₀ = 1": (
            hs.Protocol(randomizer=hs.LocalHashing(k=50, g=4, epsilon=1.0), shuffler=shuffled, n=n),
            (16,),
        ),
        "4 bits, p = 0.25": (
            hs.Protocol(randomizer=hs.BitFlipping(width=4, p=0.25), shuffler=shuffled, n=n),
            (16,),
        ),
        "target sampling, 20 targets, sigma = 0.2; 50 dummies, n = 100": (
            hs.Protocol(randomizer=hs.TargetSampling(targets=20, sigma=0.2), shuffler=hs.Scrambler(dummies=50), n=100),
            (10,),
        ),
    }
    rows = []
    for name, (protocol, counts) in cases.items():
        for times in counts:
            start = time.perf_counter()
            bound = hs.dp.compose([(protocol, times)], delta=DELTA)
            taken = time.perf_counter() - start
            ends = [f"{bound.lower:.5g}", f"{bound.upper:.5g}", f"{bound.width / bound.upper:.1e}"]
            rows.append([name, f"{times:,}", *ends, f"{taken / unit:.2f}"])
    yield from table(["rounds of", "rounds", "lower ε", "upper ε", "relative width", "time"], rows)


def page() -> Iterator[str]:
    floats = np.random.default_rng(1).random(10**7)
    unit = seconds(lambda: np.sort(floats), 5)
    hs.dp.epsilon(survey(2, 100, 1.0), delta=DELTA)
    yield "# Benchmark of the accountant"
    yield ""
    yield "`python benchmarks/accountant.py --write` measures certified central ε of randomized response (k values,"
    yield f"n people, local ε₀) under a uniform shuffle, at δ = {DELTA:g}. The unit of time is sorting 10⁷ random"
    yield f"floats (here {unit:.2f} s)."
    yield ""
    yield "## Against published bounds"
    yield ""
    closed = "*closed*: closed forms"
    yield f"The last columns are valid published bounds (`hs.dp.published`; {closed}), divided by the upper ε."
    yield ""
    yield from grid(unit)
    yield "## Growth"
    yield ""
    yield "Slopes of logarithms, ε₀ = 2; `hs.dp.compose`: n = 10,000."
    yield ""
    yield from growth()
    yield "## Largest relative width"
    yield ""
    yield "Width divided by upper bound, ε₀ from 0.25 to 6:"
    yield ""
    yield from widths()
    yield "## Several rounds"
    yield ""
    yield "`hs.dp.compose`, n = 10,000 unless stated:"
    yield ""
    yield from several_rounds(unit)
    yield "## Compared with dp-accounting"
    yield ""
    yield "dp-accounting bounds the ε of one given pair of distributions, and rounds losses up to a grid of 1e-4."
    yield "`dp.epsilon` brackets the largest ε of all pairs of datasets."
    yield ""
    yield from with_dp_accounting()


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the accountant.")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name} instead of printing it")
    write = parser.parse_args().write
    text = "\n".join(page()).rstrip("\n") + "\n"
    if write:
        PAGE.write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
