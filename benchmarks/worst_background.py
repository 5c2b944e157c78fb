"""Recompute the figures of paper/worst-background.md: plain against augmented randomized response at equal privacy.

python benchmarks/worst_background.py   prints the table; takes about a minute
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq

import hushuffle as hs

N, DELTA = 100_000, 1e-6


def augmented(k: int, share: float) -> hs.MatrixRandomizer:
    """Randomized response with e**epsilon = sqrt(k - 1) for a `share` of the people; the others send a blank."""
    grown = math.sqrt(k - 1)
    rows = np.full((k, k + 1), share / (grown + k - 1))
    np.fill_diagonal(rows[:, :k], share * grown / (grown + k - 1))
    rows[:, k] = 1 - share
    return hs.MatrixRandomizer(rows)


def central(randomizer: hs.MatrixRandomizer | hs.RandomizedResponse) -> float:
    survey = hs.Protocol(randomizer=randomizer, shuffler=hs.UniformShuffle(), n=N)
    return hs.dp.epsilon(survey, delta=DELTA).upper


def spreads(matrix: np.ndarray) -> tuple[float, float]:
    """Return n mu**2 (docs/theory/curves.md, Remark 5) if all others hold the target's value, and for a third value."""
    step = (matrix[0] - matrix[1]) ** 2
    return float((step / matrix[0]).sum()), float((step / matrix[2]).sum())


def variance(matrix: np.ndarray) -> float:
    """Return n times the mean variance of an estimated share, for uniform shares (docs/theory/curves.md, Lemma 8)."""
    mean = matrix.mean(axis=0)
    information = (matrix / mean) @ matrix.T
    return float(np.trace(np.linalg.inv(information)) - 1) / len(matrix)


def share_at(k: int, own: float, target: float) -> tuple[float, float]:
    """Return the shares of the augmented channel with the plain one's own-background spread, and with its epsilon."""
    same = brentq(lambda share: spreads(augmented(k, share).channel().matrix)[0] - own, 1e-6, 0.999)
    equal = brentq(lambda share: central(augmented(k, share)) - target, same / 2, min(2 * same, 0.999), rtol=1e-5)
    return float(same), float(equal)


def main() -> None:
    print("| k | channel | parameter | own background | third value | certified epsilon | n x variance | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    for k, level in ((10, 1.0), (100, 1.0)):
        plain = hs.RandomizedResponse(k=k, epsilon=level)
        own = plain.law().channel().matrix
        cases = [("plain", f"epsilon_0 = {level:g}", own, central(plain))]
        for share in share_at(k, spreads(own)[0], cases[0][3]):
            channel = augmented(k, share)
            cases.append(("augmented", f"share {share:.5f}", channel.channel().matrix, central(channel)))
        for name, parameter, matrix, figure in cases:
            first, third = spreads(matrix)
            error = variance(matrix)
            cells = [f"{first:.6f}", f"{third:.6f}", f"{figure:.6f}", f"{error:.4g}", f"{error / variance(own):.4f}"]
            print(f"| {k} | {name} | {parameter} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
