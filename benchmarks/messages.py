"""Histograms from one message of each person, and from several: errors over the central mechanism's, and costs.

    python benchmarks/messages.py [--write]

Prints the tables of docs/reference/estimation-benchmark.md, or writes them into it with --write: what each
protocol needs at the same epsilon and delta, sums too, and a collection from a million people over 1,000 values.
"""

from __future__ import annotations

import argparse
import math
import resource
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import NormalDist

import numpy as np

import hushuffle as hs
from hushuffle.errors import HushuffleError
from hushuffle.estimation import predicted_standard_error

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "estimation-benchmark.md"
EPSILON, DELTA = 1.0, 1e-6
GRID = ((10**6, 2), (10**6, 1_000), (10**4, 100))


def central_error(k: int) -> float:
    """Return the standard error of a count with Gaussian noise of the exact size (Balle, Wang 2018, Theorem 8).

    A histogram changes by 1 in two places; of two values one count says all, and changes by 1.
    """
    normal, step = NormalDist(), 1.0 if k == 2 else math.sqrt(2)

    def spent(sigma: float) -> float:
        near, far = step / (2 * sigma) - EPSILON * sigma / step, -step / (2 * sigma) - EPSILON * sigma / step
        return normal.cdf(near) - math.exp(EPSILON) * normal.cdf(far)

    low, high = 1e-3, 1e6
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if spent(middle) <= DELTA else (middle, high)
    return high


def truth(k: int) -> hs.RandomizedResponse:
    return hs.RandomizedResponse(k=k, epsilon=math.inf)


def one_message(n: int, k: int) -> hs.Protocol:
    start = hs.Protocol(randomizer=hs.RandomizedResponse(k=k, epsilon=1.0), shuffler=hs.UniformShuffle(), n=n)
    return hs.dp.calibrate(start, parameter="epsilon", epsilon=EPSILON, delta=DELTA).protocol


def blanket_messages(n: int, k: int) -> hs.Protocol:
    start = hs.Protocol(randomizer=truth(k), shuffler=hs.BlanketMessages(p=0.1), n=n)
    return hs.dp.calibrate(start, parameter="messages", epsilon=EPSILON, delta=DELTA).protocol


def fakes_per_value(n: int, k: int) -> hs.Protocol:
    start = hs.Protocol(randomizer=truth(k), shuffler=hs.FakesPerValue(p=40 / n), n=n)
    return hs.dp.calibrate(start, parameter="messages", epsilon=EPSILON, delta=DELTA).protocol


def augmented(n: int, k: int) -> hs.Protocol:
    """Return the one with the fewest fair coins of the shuffler for each value."""

    def of(trials: int) -> hs.Protocol:
        shuffler = hs.AugmentedShuffle(each=hs.DummyLaw.binomial(trials=trials, p=0.5))
        return hs.Protocol(randomizer=truth(k), shuffler=shuffler, n=n)

    low, high = 1, 4096
    while high - low > 1:
        middle = (low + high) // 2
        met = hs.dp.epsilon(of(middle), delta=DELTA).upper <= EPSILON
        low, high = (low, middle) if met else (middle, high)
    return of(high)


def pure(n: int, k: int) -> hs.Protocol:
    return hs.Protocol(randomizer=truth(k), shuffler=hs.AugmentedShuffle.pure(epsilon=EPSILON), n=n)


PROTOCOLS: dict[str, Callable[[int, int], hs.Protocol]] = {
    "one noisy message": one_message,
    "blanket messages": blanket_messages,
    "fake reports of each value": fakes_per_value,
    "dummies by the shuffler": augmented,
    "dummies, δ = 0": pure,
}


def noisy_hash(n: int, k: int) -> hs.Protocol:
    """Return one message of n/100 buckets: more serve rare values better, and frequent ones worse."""
    start = hs.Protocol(randomizer=hs.LocalHashing(k=k, g=n // 100, epsilon=4.0), shuffler=hs.UniformShuffle(), n=n)
    return hs.dp.calibrate(start, parameter="epsilon", epsilon=EPSILON, delta=DELTA).protocol


def hashed(besides: float) -> Callable[[int, int], hs.Protocol]:
    """Return who makes the protocol with about so many messages besides: they are proportional to g."""

    def made(n: int, k: int) -> hs.Protocol:
        def of(g: int) -> hs.Protocol:
            shuffler = hs.BlanketMessages(p=besides / math.ceil(besides), trials=math.ceil(besides))
            start = hs.Protocol(randomizer=hs.LocalHashing(k=k, g=g, epsilon=math.inf), shuffler=shuffler, n=n)
            return hs.dp.calibrate(start, parameter="messages", epsilon=EPSILON, delta=DELTA).protocol

        few = n // 50
        return of(int(few * besides / of(few).shuffler.own_messages))

    return made


LARGE = ((10**6, 10**6),)
HASHED: dict[str, Callable[[int, int], hs.Protocol]] = {
    "one noisy message": one_message,
    "one noisy message, hashed": noisy_hash,
    "hashed, one additional": hashed(1.0),
    "hashed, four additional": hashed(4.0),
    "blanket messages": blanket_messages,
}


def many() -> Iterator[str]:
    """Histograms over more values than messages of each can be sent for."""
    yield "| people | values | protocol | buckets | error, a rare value | error, a tenth | messages | bits |"
    yield "|---|---|---|---|---|---|---|---|"
    for n, k in LARGE:
        yield from (many_row(name, n, k) for name in HASHED)


def many_row(name: str, n: int, k: int) -> str:
    made = HASHED[name](n, k)
    rare, common = n * predicted_standard_error(made, frequency=[1 / k, 0.1]) / central_error(k)
    messages, device = 1 + made.shuffler.own_messages, made.randomizer
    buckets = f"{device.g:,}" if isinstance(device, hs.LocalHashing) else ""
    bits = messages * device.layout.bits
    return f"| {n:,} | {k:,} | {name} | {buckets} | {rare:.2f} | {common:.2f} | {messages:,.4g} | {bits:,.4g} |"


def row(name: str, n: int, k: int) -> str:
    try:
        made = PROTOCOLS[name](n, k)
    except HushuffleError:
        return f"| {n:,} | {k:,} | {name} | not reached | | | |"
    rare, common = n * predicted_standard_error(made, frequency=[1 / k, max(1 / k, 0.1)]) / central_error(k)
    messages = 1 + made.shuffler.own_messages
    local = "∞" if math.isinf(made.randomizer.local_epsilon) else f"{made.randomizer.local_epsilon:.1f}"
    return f"| {n:,} | {k:,} | {name} | {rare:.2f} | {common:.2f} | {messages:,.4g} | {local} |"


def compared() -> Iterator[str]:
    yield "| people | values | protocol | error, even share | error, a tenth | messages | local ε |"
    yield "|---|---|---|---|---|---|---|"
    for n, k in GRID:
        yield from (row(name, n, k) for name in PROTOCOLS)


def summed() -> Iterator[str]:
    """Sums of numbers between 0 and 1: errors over that of a trusted party's Laplace noise."""
    yield "| people | protocol | error | messages | bits | local ε |"
    yield "|---|---|---|---|---|---|"
    for n in (10**4, 10**6):
        yield from (one_number(n), split_number(n))


def one_number(n: int) -> str:
    best = hs.best_levels(n=n, epsilon=EPSILON, delta=DELTA)
    device, error = best.protocol.randomizer, n * best.error * EPSILON / math.sqrt(2)
    bits, local = device.layout.bits, device.local_epsilon
    return f"| {n:,} | one noisy message, {best.levels} levels | {error:.2f} | 1 | {bits:.3g} | {local:.1f} |"


def split_number(n: int) -> str:
    levels = math.ceil(2.5 * EPSILON * math.sqrt(n)) + 1
    made = hs.SplitAndMix(low=0, high=1, levels=levels, n=n, epsilon=EPSILON, delta=DELTA)
    error = made.standard_error() * EPSILON / math.sqrt(2)
    return f"| {n:,} | split and mix, {levels:,} levels | {error:.2f} | {made.messages} | {made.bits_per_person} | ∞ |"


def collected() -> Iterator[str]:
    """Collections of a million people whose values follow Zipf's law."""
    first, second = collection(blanket_messages, 10**6, 1_000), collection(hashed(1.0), 10**6, 10**6)
    yield "| | 1,000 values | 1,000,000 values, hashed, one additional message |"
    yield "|---|---|---|"
    yield from (f"| {name} | {figure} | {second[name]} |" for name, figure in first.items())


def collection(make: Callable[[int, int], hs.Protocol], n: int, k: int) -> dict[str, str]:
    """Run a collection and return its times, costs and errors."""
    weights = 1 / np.arange(1, k + 1)
    values = np.random.default_rng(1).choice(k, size=n, p=weights / weights.sum())
    shares = np.bincount(values, minlength=k) / n
    start = time.perf_counter()
    survey = make(n, k)
    calibrated = time.perf_counter() - start
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    released = survey.collect(values)
    estimate = hs.estimate(released, protocol=survey)
    ran = time.perf_counter() - start
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    measured = n * math.sqrt(float(np.mean((estimate.frequencies - shares) ** 2)))
    predicted = n * float(predicted_standard_error(survey, frequency=0.0))
    return {
        "to find the smallest p": f"{calibrated:.2g} s",
        "to collect, shuffle and estimate in memory": f"{ran:.2g} s, {max(more, 1):,.0f} MB more",
        "messages of each person": f"{released.reports.shape[0] / n:.4f}",
        "standard error of a count, predicted": f"{predicted:.2f} people",
        "root of the mean square error over the values, measured": f"{measured:.2f} people",
        "central Gaussian mechanism": f"{central_error(k):.2f} people",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the tables into the page")
    write = parser.parse_args().write
    # The first measures memory, before the others take some.
    made = {"collected": collected, "compared": compared, "many": many, "summed": summed}
    tables = {name: "\n".join(make()) for name, make in made.items()}
    if not write:
        print("\n\n".join(tables.values()))
        return
    text = PAGE.read_text(encoding="utf-8")
    for name, table in tables.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        head, _, rest = text.partition(begin)
        text = f"{head}{begin}\n{table}\n\n{end}{rest.partition(end)[2]}"
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
