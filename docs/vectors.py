"""Write the test vectors that other libraries can be compared with: python docs/vectors.py."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import hushuffle as hs

FILE = Path(__file__).parent / "test-vectors.json"
_ROWS = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]]

# How the file describes a mechanism, and what it is.
MECHANISMS = (
    ({"kind": "randomized-response", "k": 2, "epsilon": 1.0}, hs.RandomizedResponse(k=2, epsilon=1.0)),
    ({"kind": "randomized-response", "k": 2, "epsilon": 3.0}, hs.RandomizedResponse(k=2, epsilon=3.0)),
    ({"kind": "randomized-response", "k": 3, "epsilon": 1.0}, hs.RandomizedResponse(k=3, epsilon=1.0)),
    ({"kind": "randomized-response", "k": 5, "epsilon": 2.0}, hs.RandomizedResponse(k=5, epsilon=2.0)),
    ({"kind": "local-hashing", "k": 4, "g": 2, "epsilon": 1.0}, hs.LocalHashing(k=4, g=2, epsilon=1.0)),
    ({"kind": "subset-selection", "k": 4, "w": 2, "epsilon": 1.0}, hs.SubsetSelection(k=4, w=2, epsilon=1.0)),
    (
        {"kind": "unary-encoding", "k": 3, "epsilon": 1.0, "encoding": "optimized"},
        hs.UnaryEncoding(k=3, epsilon=1.0, encoding="optimized"),
    ),
    (
        {"kind": "unary-encoding", "k": 3, "epsilon": 2.0, "encoding": "symmetric"},
        hs.UnaryEncoding(k=3, epsilon=2.0, encoding="symmetric"),
    ),
    ({"kind": "hadamard-response", "k": 3, "epsilon": 1.0}, hs.HadamardResponse(k=3, epsilon=1.0)),
    ({"kind": "square-wave", "bins": 4, "width": 1, "epsilon": 1.0}, hs.SquareWave(bins=4, width=1, epsilon=1.0)),
    ({"kind": "discrete-laplace", "levels": 4, "epsilon": 1.0}, hs.DiscreteLaplace(levels=4, epsilon=1.0)),
    ({"kind": "rounded-gaussian", "levels": 4, "epsilon": 1.0}, hs.RoundedGaussian(levels=4, epsilon=1.0)),
    (
        {"kind": "target-sampling", "targets": 4, "sigma": 0.5, "convention": "uniform"},
        hs.TargetSampling(targets=4, sigma=0.5),
    ),
    ({"kind": "bit-flipping", "width": 2, "p": 0.2}, hs.BitFlipping(width=2, p=0.2)),
    ({"kind": "matrix"}, hs.MatrixRandomizer(channel=hs.Channel(matrix=_ROWS))),
)
CROWDS = ((4, 0, 1e-2), (4, 3, 1e-2), (20, 0, 1e-3), (10_000, 0, 1e-6))

KEY, RECORDS, ROUND = bytes(range(32)), (0, 1, 2, 7, 1000, 2**40), 3
VALUES = (0, 1, 2, 0, 1, 2)


def brackets() -> Iterator[dict[str, Any]]:
    """Yield the central privacy of every mechanism in every crowd."""
    for described, mechanism in MECHANISMS:
        matrix = mechanism.channel().matrix.astype(float).tolist()
        for n, dummies, delta in CROWDS:
            yield {**bracket(mechanism, n=n, dummies=dummies, delta=delta), "mechanism": described, "matrix": matrix}


def bracket(mechanism: Any, *, n: int, dummies: int, delta: float) -> dict[str, Any]:
    """Return the bracket of one collection, with the pair of datasets at its lower end."""
    shuffler = hs.Scrambler(dummies=dummies) if dummies else hs.UniformShuffle()
    bound = hs.dp.epsilon(hs.Protocol(randomizer=mechanism, shuffler=shuffler, n=n), delta=delta)
    assert bound.witness is not None
    others = [*bound.witness.others, *[0] * (mechanism.inputs - len(bound.witness.others))]
    return {
        "n": n,
        "dummies": dummies,
        "delta": delta,
        "local_epsilon": mechanism.local_epsilon,
        "epsilon": [bound.lower, bound.upper],
        "dummy_law": mechanism.law().blanket().law.tolist(),
        "worst_pair": {"others": others, "target": list(bound.witness.target)},
    }


def samplers() -> Iterator[dict[str, Any]]:
    """Yield what is drawn for six records under one key, each from the beginning of the records' streams."""

    def coins() -> hs.randomness.Randomness:
        return hs.keyed(key=KEY, records=RECORDS, round=ROUND)

    size = len(RECORDS)
    source = coins()
    yield {"draw": "words", "times": 2, "drawn": [[int(word) for word in source.words(size)] for _ in range(2)]}
    yield {"draw": "coins", "threshold": 2**62, "drawn": coins().coins(2**62, size).tolist()}
    for high in (6, 8, 4_000_000_000, 3 * 2**61):
        yield {"draw": "integers", "high": high, "drawn": coins().integers(high, size).tolist()}
    response = hs.RandomizedResponse(k=3, epsilon=1.0)
    for described, mechanism, threshold in (
        ({"kind": "randomized-response", "k": 3, "epsilon": 1.0}, response, response.threshold),
        ({"kind": "hadamard-response", "k": 3, "epsilon": 1.0}, hs.HadamardResponse(k=3, epsilon=1.0), None),
    ):
        coin = mechanism.threshold if threshold is None else threshold
        reports = mechanism.randomize(np.array(VALUES), rng=coins()).tolist()
        yield {"draw": "reports", "mechanism": described, "threshold": coin, "values": list(VALUES), "drawn": reports}


def document() -> dict[str, Any]:
    """Return the whole file."""
    return {
        "version": 1,
        "relation": "replace one person's value, n fixed; one release in uniformly random order, dummies included",
        "dummies": "independent draws from dummy_law; their number is public",
        "brackets": list(brackets()),
        "samplers": {
            "key": KEY.hex(),
            "round": ROUND,
            "records": list(RECORDS),
            "draws": list(samplers()),
        },
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps(document(), indent=1) + "\n", encoding="utf-8")
