"""Where brackets of central epsilon are wide: few messages of a kind. The table of docs/theory/crowds.md.

    python benchmarks/crowds.py          the table of the page
    python benchmarks/crowds.py --grid   randomized response over a grid, with and without dummies, the widest first

Nothing here is a test. Takes about five minutes.
"""

from __future__ import annotations

import math
import sys
from itertools import product

import hushuffle as hs

SCRAMBLERS = ((5, 100, 0, 0.1),)
RESPONSES = ((3, 300, 4.0), (4, 30, 2.0))
FILTERS = (
    (2, 1000, 0.1),
    (4, 1000, 0.25),
    (3, 200, 0.1),
    (3, 50, 0.25),
)
DELTA = 1e-4


def cases() -> list[tuple[str, hs.Protocol]]:
    listed: list[tuple[str, hs.Protocol]] = []
    for targets, sources, dummies, sigma in SCRAMBLERS:
        sampling, shuffler = hs.TargetSampling(targets=targets, sigma=sigma), hs.Scrambler(dummies=dummies)
        name = f"scrambler, {targets} targets, {sources:,} sources, {dummies} dummies, sigma = {sigma}"
        listed.append((name, hs.Protocol(randomizer=sampling, shuffler=shuffler, n=sources)))
    for k, n, epsilon in RESPONSES:
        response = hs.RandomizedResponse(k=k, epsilon=epsilon)
        name = f"{k}-ary randomized response, n = {n:,}, epsilon_0 = {epsilon:g}"
        listed.append((name, hs.Protocol(randomizer=response, shuffler=hs.UniformShuffle(), n=n)))
    for filters, bits, p in FILTERS:
        flipping = hs.BitFlipping(width=filters, p=p)
        name = f"{filters} Bloom filters of {bits:,} bits, p = {p}"
        listed.append((name, hs.Protocol(randomizer=flipping, shuffler=hs.UniformShuffle(), n=bits)))
    return listed


def grid() -> None:
    found = []
    for k, n, epsilon, share in product(
        (3, 4, 10, 50, 1000), (10, 30, 100, 300, 1000, 10_000), (1, 2, 4, 6), (0, 0.02, 0.5)
    ):
        dummies = math.ceil(share * n)
        shuffler = hs.Scrambler(dummies=dummies) if dummies else hs.UniformShuffle()
        response = hs.RandomizedResponse(k=k, epsilon=float(epsilon))
        for delta in (1e-4, 1e-6):
            figure = hs.dp.epsilon(hs.Protocol(randomizer=response, shuffler=shuffler, n=n), delta=delta)
            width = figure.upper / figure.lower - 1 if figure.lower else float("inf")
            found.append((width, f"k={k} n={n} eps0={epsilon} d={dummies} delta={delta:g}", figure))
    print(f"{len(found)} cases, {sum(width > 0.05 for width, _, _ in found)} wider than 5 %")
    for width, name, figure in sorted(found, key=lambda case: -case[0])[:20]:
        print(f"{width:8.2%}  {name}: {figure.lower:.5g} to {figure.upper:.5g}")


def main() -> None:
    if "--grid" in sys.argv:
        return grid()
    print("| case | lower end | upper end | width |\n|---|---|---|---|")
    for name, protocol in cases():
        figure = hs.dp.epsilon(protocol, delta=DELTA)
        print(
            f"| {name} | {figure.lower:.4g} | {figure.upper:.4g} | {figure.upper / figure.lower - 1:.1%} |", flush=True
        )
    return None


if __name__ == "__main__":
    main()
