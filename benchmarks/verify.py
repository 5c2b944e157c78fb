"""Check 200 certificates by the checker of `hushuffle verify`: the figures of docs/explanation/kinds-of-figures.md.

    python benchmarks/verify.py [--count N] [--first N] [--each]

The protocols are drawn with a fixed seed: mechanisms, values, local epsilon, people from 2 to 10**6, delta, dummies.
`--each` prints a line for each. Seconds are of a processor.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import islice

import hushuffle as hs
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.model import Certificate
from shuffle_certificate.certificate import read
from shuffle_certificate.checks import AGREES, Row, check

SEED, COUNT = 21, 200
PEOPLE = (2, 3, 5, 10, 30, 100, 300, 1000, 3000, 10_000, 100_000, 1_000_000)
DELTAS = (1e-2, 1e-4, 1e-6, 1e-9)
EPSILONS = (0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0)
KINDS = (
    "two values", "two values", "randomized response", "randomized response", "randomized response", "target sampling",
    "local hashing", "subset selection", "unary encoding", "Hadamard response", "square wave", "discrete Laplace",
    "rounded Gaussian", "bit flipping", "matrix",
)  # fmt: skip


def mechanism(kind: str, epsilon: float, rng: random.Random) -> Mechanism:
    """Return a mechanism of a kind."""
    few = rng.choice((3, 4, 5))
    made: dict[str, Callable[[], Mechanism]] = {
        "two values": lambda: hs.RandomizedResponse(k=2, epsilon=epsilon),
        "randomized response": lambda: hs.RandomizedResponse(
            k=rng.choice((3, 4, 5, 10, 20, 100, 1000)), epsilon=epsilon
        ),
        "target sampling": lambda: hs.TargetSampling(
            targets=rng.choice((3, 10, 50)), sigma=rng.choice((0.1, 0.5, 0.9))
        ),
        "local hashing": lambda: hs.LocalHashing(k=few, g=2, epsilon=epsilon),
        "subset selection": lambda: hs.SubsetSelection(k=few + 1, w=2, epsilon=epsilon),
        "unary encoding": lambda: hs.UnaryEncoding(
            k=few, epsilon=epsilon, encoding=rng.choice(("optimized", "symmetric"))
        ),
        "Hadamard response": lambda: hs.HadamardResponse(k=few, epsilon=epsilon),
        "square wave": lambda: hs.SquareWave(bins=few + 1, width=1, epsilon=epsilon),
        "discrete Laplace": lambda: hs.DiscreteLaplace(levels=few, epsilon=epsilon),
        "rounded Gaussian": lambda: hs.RoundedGaussian(levels=few, epsilon=epsilon),
        "bit flipping": lambda: hs.BitFlipping(width=rng.choice((1, 2, 3)), p=rng.choice((0.05, 0.2, 0.4))),
        "matrix": lambda: hs.MatrixRandomizer(matrix(few, rng)),
    }
    return made[kind]()


def matrix(size: int, rng: random.Random) -> list[list[float]]:
    """Return probabilities of reports for each value."""
    rows = [[rng.randint(1, 9) for _ in range(size)] for _ in range(size)]
    return [[entry / sum(row) for entry in row] for row in rows]


def protocols(count: int) -> Iterator[tuple[str, hs.Protocol, float]]:
    """Yield kinds, protocols and deltas."""
    rng = random.Random(SEED)  # noqa: S311 - not for privacy
    places = iter(range(count))
    place = next(places, None)
    while place is not None:
        kind = KINDS[place % len(KINDS)]
        randomizer = mechanism(kind, rng.choice(EPSILONS), rng)
        n = rng.choice(PEOPLE)
        delta = rng.choice([delta for delta in DELTAS if delta * n <= 100])
        dummies = rng.choice((0, 0, 0, 1, 10, 100, n // 10))
        shuffler = hs.Scrambler(dummies=dummies) if dummies else hs.UniformShuffle()
        protocol = hs.Protocol(randomizer=randomizer, shuffler=shuffler, n=n)
        if kind == "bit flipping" and not certifiable(protocol):
            continue  # drawn again
        yield kind, protocol, delta
        place = next(places, None)


def certifiable(protocol: hs.Protocol) -> bool:
    """Return whether a certificate is written: for flipped bits in small crowds none is."""
    try:
        hs.dp.certificate(protocol, delta=1e-2)
    except hs.errors.UnsupportedProtocolError:
        return False
    return True


def verified(count: int, first: int = 0) -> Iterator[tuple[str, Certificate, Row, float]]:
    """Yield for each protocol its certificate, what the checker says, and the seconds that the product took."""
    for kind, protocol, delta in islice(protocols(count), first, None):
        start = time.process_time()
        claim = hs.dp.certificate(protocol, delta=delta)
        took = time.process_time() - start
        yield kind, claim, check(read(claim.to_json()), question=kind), took


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--each", action="store_true")
    asked = parser.parse_args()
    found = defaultdict[str, list[tuple[Row, float, int]]](list)
    for place, (kind, claim, row, took) in enumerate(verified(asked.count, asked.first), asked.first):
        size = len(claim.to_json())
        found[kind].append((row, took, size))
        if asked.each or row.verdict != AGREES:
            ends = f"{claim.epsilon[0]:.6g} to {claim.epsilon[1]:.6g}"
            where = f"n {claim.n:,} d {claim.dummies:,} k {claim.values} delta {claim.delta:g}"
            said = f"{row.verdict:12} {row.seconds:7.2f} s ({took:.2f} s) {row.reason}"
            print(f"{place:3} {kind:20} {where:45} {ends:25} {said}")
            sys.stdout.flush()
    print("\n| mechanism | protocols | agree | median seconds | most | bytes, most |\n|---|---:|---:|---:|---:|---:|")
    for kind, rows in found.items():
        seconds = [row.seconds for row, _, _ in rows]
        agree = sum(row.verdict == AGREES for row, _, _ in rows)
        largest = max(size for _, _, size in rows)
        print(
            f"| {kind} | {len(rows)} | {agree} | {statistics.median(seconds):.1f} | {max(seconds):.1f} | {largest:,} |"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
