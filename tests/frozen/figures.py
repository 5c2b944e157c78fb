"""Two hundred figures that must not move: each an expression of the façade, as a reader would write it."""

from __future__ import annotations

import math
from itertools import product
from typing import Any, Final

import numpy as np

import hushuffle as hs
from hushuffle.questions.bloom.privacy import FlipProbability

_RESPONSES: Final = [
    f"hs.RandomizedResponse(k={k}, epsilon={epsilon})" for k, epsilon in product((2, 3, 10), (0.5, 2.0, 6.0))
]
_OTHERS: Final = [
    "hs.RandomizedResponse.from_truth_probability(k=4, p=0.3)",
    "hs.LocalHashing(k=50, g=4, epsilon=1.0)",
    "hs.LocalHashing(k=3, g=2, epsilon=2.0)",
    "hs.LocalHashing(k=7, g=7, epsilon=1.0, family='affine')",
    "hs.BitFlipping(width=1, p=0.2)",
    "hs.BitFlipping(width=3, p=0.1)",
    "hs.BitFlipping(width=4, p=0.3)",
    "hs.TargetSampling(targets=5, sigma=0.3)",
    "hs.TargetSampling(targets=4, sigma=0.3, convention='exclusive')",
    "hs.TargetSampling(targets=5, sigma=0.2, flood=2)",
    "hs.MatrixRandomizer(channel=hs.Channel(matrix=[[0.5, 0.2, 0.3], [0.1, 0.7, 0.2], [0.3, 0.3, 0.4]]))",
]
_SHUFFLERS: Final = ["hs.UniformShuffle()", "hs.Scrambler(dummies=20)", "hs.NoShuffle()"]


def _protocol(randomizer: str, shuffler: str, n: int) -> str:
    return f"hs.Protocol(randomizer={randomizer}, shuffler={shuffler}, n={n})"


def _central() -> list[str]:
    uniform = "hs.UniformShuffle()"
    asked = [f"hs.dp.epsilon({_protocol(r, uniform, n)}, delta=1e-6)" for r in _RESPONSES for n in (60, 1000, 33_000)]
    asked += [f"hs.dp.delta({_protocol(r, uniform, 200)}, epsilon=0.4)" for r in _RESPONSES]
    asked += [f"hs.dp.epsilon({_protocol(r, s, 25)}, delta=1e-4)" for r in _OTHERS for s in _SHUFFLERS]
    asked += [f"hs.dp.delta({_protocol(r, uniform, 25)}, epsilon=0.4)" for r in _OTHERS]
    asked += [f"hs.dp.epsilon({_protocol(_RESPONSES[1], s, 100)}, delta=1e-6)" for s in _SHUFFLERS]
    asked += [f"hs.dp.local_epsilon({_protocol(r, uniform, 10)})" for r in [*_RESPONSES, *_OTHERS]]
    mallows = "hs.MallowsShuffle(reference=list(range(30)), theta=0.4)"
    asked.append(f"hs.dp.epsilon({_protocol(_RESPONSES[0], mallows, 30)}, delta=1e-3)")
    return asked


def _composed() -> list[str]:
    uniform = "hs.UniformShuffle()"
    chosen = [_RESPONSES[0], _RESPONSES[1], _RESPONSES[4], *_OTHERS[1:2], _OTHERS[5], _OTHERS[7], _OTHERS[10]]
    asked = [f"hs.dp.compose([{_protocol(r, uniform, 30)}] * 3, delta=1e-5)" for r in chosen]
    asked += [f"hs.dp.compose_delta([{_protocol(r, uniform, 30)}] * 3, epsilon=1.0)" for r in chosen[:3]]
    both = f"[{_protocol(_RESPONSES[0], uniform, 100)}, {_protocol(_RESPONSES[4], uniform, 100)}]"
    asked += [f"hs.dp.compose({both}, delta=1e-5)", f"hs.dp.parallel({both}, delta=1e-5)"]
    asked.append(
        f"hs.dp.instance({_protocol(_RESPONSES[1], uniform, 60)}, histogram=hs.Histogram(counts=[40, 20]), delta=1e-4)"
    )
    return asked


def _guessing() -> list[str]:
    uniform = "hs.UniformShuffle()"
    asked = [f"hs.qif.vulnerability({_protocol(r, uniform, 50)})" for r in _RESPONSES]
    asked += [
        f"hs.qif.vulnerability({_protocol(r, uniform, 12)}, adversary={adversary})"
        for r, adversary in product(_RESPONSES[1::3], ("hs.Strong(others=None)", "hs.Informed(m=4)"))
    ]
    asked += [
        f"hs.qif.iid_vulnerability({_protocol(_RESPONSES[1], uniform, n)}, frequencies=[{share}, {1 - share}])"
        for n, share in product((10, 200), (0.5, 0.75))
    ]
    asked += [f"hs.qif.max_load(n={n}, k={k})" for n, k in [(10, 3), (1000, 10), (33_000, 5), (10**6, 1000)]]
    return asked


def _identity() -> list[str]:
    uniform = "hs.UniformShuffle()"
    chosen = [*_RESPONSES, _OTHERS[1], _OTHERS[4], _OTHERS[10]]
    asked = [f"hs.pie.alpha({_protocol(r, uniform, 500)})" for r in chosen]
    asked += [f"hs.pie.bayes_error({_protocol(r, uniform, 500)})" for r in chosen]
    asked.append("hs.pse.kl_divergence(np.linspace(0, 5, 400) ** 2, np.linspace(1, 3, 500), k=1)")
    return asked


def _order_columns_traffic() -> list[str]:
    groups = "[np.array([0, 3, 4]), np.array([1, 2]), np.array([2, 5])]"
    reference = "np.array([3, 0, 4, 2, 1, 5])"
    asked = [f"hs.order.kendall_sensitivity({reference}, {groups})", f"hs.order.reference_order({groups})"]
    asked += ["hs.order.sample_mallows(9, theta=0.3, distance='kendall', rng=hs.reproducible(4))"]
    asked += [
        f"hs.bloom.epsilon(filters={filters}, bits={bits}, p={p}, delta=1e-3)"
        for filters, bits, p in [(1, 1000, 0.1), (1, 10_000, 0.3), (2, 1000, 0.2), (3, 2000, 0.3)]
    ]
    asked.append("hs.bloom.epsilon(filters=1, bits=1000, p=0.2, delta=1e-3, hashes=2)")
    asked += [
        f"hs.bloom.estimate_flip_prob(filters=1, bits=1000, epsilon=1.0, delta=1e-3, basis='{basis}')"
        for basis in ("certified", "pair")
    ]
    asked += [
        f"hs.traffic.sampling_epsilon(targets={targets}, sigma={sigma}, flood={flood})"
        for targets, sigma, flood in product((2, 5, 20), (0.1, 0.5), (0, 1))
    ]
    asked += [
        f"hs.traffic.scrambler_epsilon(targets={targets}, sources=20, sigma=0.2, dummies={dummies}, delta={delta})"
        for targets, dummies, delta in product((2, 6), (0, 5, 30), (0.0, 1e-3))
    ]
    asked.append("hs.traffic.scrambler_epsilon(targets=4, sources=20, sigma=0.2, dummies=5, cap=20)")
    return asked


EXPRESSIONS: Final = [*_central(), *_composed(), *_guessing(), *_identity(), *_order_columns_traffic()]


def plain(value: Any) -> Any:
    """Return a figure as JSON has it."""
    if isinstance(value, hs.Bound):
        return {"lower": _number(value.lower), "upper": _number(value.upper), "kind": value.kind, "unit": value.unit}
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, FlipProbability):
        return {"p": value.p, "certified": plain(value.certified), "pair": plain(value.pair)}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return _number(value) if isinstance(value, float) else value


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def answer(expression: str) -> Any:
    """Return what an expression gives: a figure, or the kind of error."""
    try:
        return plain(eval(expression, {"hs": hs, "np": np}))  # noqa: S307 - our own lines above
    except Exception as error:  # noqa: BLE001 - which error it is belongs to the picture
        return {"error": type(error).__name__}
