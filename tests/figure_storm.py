"""Random calls of the public functions, and what their figures may not contradict: `oracles.cheap_truths`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import hushuffle as hs
from hushuffle.errors import HushuffleError, NumericalError, UnsupportedProtocolError
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


ODD: tuple[Any, ...] = (
    None,
    "x",
    -1,
    0,
    1,
    2.5,
    1e-320,
    1e308,
    10**30,
    math.nan,
    math.inf,
    -math.inf,
    True,
    [],
    [1, "a"],
    {},
)
"""What nobody should pass: whichever argument it stands for, there is a figure or one clear error."""


def _numbers(rng: np.random.Generator) -> dict[str, Any]:
    """Return an argument of every kind that the public functions take, drawn anew."""
    k, n = int(rng.integers(2, 6)), int(rng.choice([1, 2, 5, 40]))
    size = int(rng.integers(1, 9))
    rows = rng.dirichlet(np.ones(int(rng.integers(2, 4))), size=k)
    epsilon = float(math.exp(rng.uniform(-6, 3.5)))
    randomizers: list[Any] = [
        hs.RandomizedResponse(k=k, epsilon=float(rng.choice([epsilon, math.inf]))),
        hs.SubsetSelection(k=k, w=1 + int(rng.integers(k - 1)), epsilon=epsilon),
        hs.LocalHashing(k=k, g=int(rng.integers(2, 5)), epsilon=epsilon),
        hs.BitFlipping(width=int(rng.integers(1, 3)), p=float(rng.uniform(0.01, 0.49))),
        hs.TargetSampling(targets=k, sigma=float(rng.uniform(0.01, 0.99))),
        hs.MatrixRandomizer(channel=hs.Channel(matrix=rows)),
    ]
    randomizer = randomizers[int(rng.integers(len(randomizers)))]
    shufflers: list[Any] = [
        hs.UniformShuffle(),
        hs.UniformShuffle(),
        hs.NoShuffle(),
        hs.Scrambler(dummies=int(rng.integers(0, 6))),
        hs.Scrambler(dummies=hs.DummyLaw.of({0: 0.5, 3: 0.5})),
        hs.MallowsShuffle(reference=np.arange(n), theta=float(rng.choice([0.0, 0.3, 5.0]))),
    ]
    shuffler = shufflers[int(rng.integers(len(shufflers)))]
    protocol: Any = hs.Protocol(randomizer=randomizer, shuffler=shuffler, n=n)
    if rng.random() < 0.15:
        groups = [(int(rng.integers(0, 9)), hs.RandomizedResponse(k=k, epsilon=each)) for each in (epsilon, 1.0)]
        protocol = hs.MixedProtocol(groups=[*groups, (1, groups[0][1])], shuffler=hs.UniformShuffle())
    groups_of = [[int(item) for item in rng.choice(size, size=int(rng.integers(1, size + 1)), replace=False)]]
    counts = rng.integers(0, 9, size=k)
    return {
        "protocol": protocol,
        "rounds": [(protocol, int(rng.choice([1, 1, 2])))],
        "protocols": [protocol, protocol],
        "delta": float(rng.choice([0.0, 1e-9, 1e-3, 0.3])),
        "epsilon": float(rng.choice([0.0, 0.1, epsilon])),
        "share": float(rng.random()),
        "small": int(rng.integers(1, 5)),
        "n": n,
        "k": k,
        "size": size,
        "histogram": hs.Histogram(counts=counts),
        "counts": counts,
        "frequencies": rng.dirichlet(np.ones(k)),
        "channel": hs.Channel(matrix=rows),
        "prior": rng.dirichlet(np.ones(k)),
        "gain": np.eye(k),
        "adversary": [hs.Strong(), hs.Uninformed(), hs.Informed(m=int(rng.integers(0, n + 1)))][int(rng.integers(3))],
        "theta": float(rng.choice([0.0, 0.5, 3.0])),
        "reference": rng.permutation(size),
        "groups": groups_of,
        "encoding": "optimized",
        "distance": str(rng.choice(["kendall", "spearman", "hamming", "cayley"])),
        "scores": rng.normal(size=int(rng.integers(2, 60))),
        "more_scores": rng.normal(size=int(rng.integers(2, 60))) + 1,
        "alpha": float(rng.choice([0.0, 0.3, 5.0])),
        "bits": int(rng.choice([2, 5, 40])),
        "p": float(rng.uniform(0.01, 0.49)),
        "parameter": str(rng.choice(["epsilon", "n", "dummies", "rounds", "delta"])),
        "reports": rng.integers(0, k, size=n),
        "target": (0, int(rng.integers(1, 4))),
    }


CALLS: dict[str, dict[str, str]] = {
    "dp.epsilon": {"protocol": "protocol", "delta": "delta", "reports_per_person": "small"},
    "dp.delta": {"protocol": "protocol", "epsilon": "epsilon"},
    "dp.local_epsilon": {"protocol": "protocol"},
    "dp.compose": {"rounds": "rounds", "delta": "delta"},
    "dp.parallel": {"protocols": "protocols", "delta": "delta"},
    "dp.approximate": {"rounds": "rounds", "delta": "delta"},
    "dp.information": {"protocol": "protocol"},
    "dp.instance": {"protocol": "protocol", "histogram": "histogram", "delta": "delta"},
    "qif.prior": {"protocol": "protocol"},
    "qif.vulnerability": {"protocol": "protocol", "adversary": "adversary"},
    "qif.quick_vulnerability": {"protocol": "protocol", "adversary": "adversary"},
    "qif.iid_vulnerability": {"protocol": "protocol", "frequencies": "frequencies"},
    "qif.iid_prior_vulnerability": {"frequencies": "frequencies"},
    "qif.asymptotic_vulnerability": {"protocol": "protocol"},
    "qif.max_load": {"n": "n", "k": "k"},
    "qif.bayes_capacity": {"channel": "channel"},
    "qif.shannon_capacity": {"channel": "channel"},
    "qif.shannon_leakage": {"channel": "channel", "prior": "prior"},
    "qif.additive_leakage": {"channel": "channel", "prior": "prior", "gain": "gain"},
    "qif.multiplicative_leakage": {"channel": "channel", "prior": "prior", "gain": "gain"},
    "qif.refines": {"first": "channel", "second": "channel"},
    "pie.alpha": {"protocol": "protocol"},
    "pie.bayes_error": {"protocol": "protocol", "largest_prior": "share"},
    "pie.composed_alpha": {"protocol": "protocol", "reports": "small"},
    "pie.composed_error": {"protocol": "protocol", "reports": "small"},
    "pie.contraction": {"protocol": "protocol"},
    "pie.ldp_alpha": {"protocol": "protocol"},
    "pie.fano_error": {"alpha_bits": "alpha", "n": "n"},
    "pie.alpha_for_error": {"bayes_error": "share", "n": "n"},
    "pie.epsilon_for_error": {"bayes_error": "share", "n": "n", "k": "k"},
    "pse.kl_divergence": {"genuine": "scores", "impostor": "more_scores", "k": "small"},
    "pse.plug_in": {"genuine_counts": "counts", "impostor_counts": "counts"},
    "order.sensitivity": {"reference": "reference", "groups": "groups", "distance": "distance"},
    "order.width": {"reference": "reference", "groups": "groups"},
    "order.alpha_for_theta": {"theta": "theta", "reference": "reference", "groups": "groups", "distance": "distance"},
    "order.theta_for_alpha": {"alpha": "alpha", "reference": "reference", "groups": "groups", "distance": "distance"},
    "order.everybody_alpha": {"theta": "theta", "n": "n", "distance": "distance"},
    "order.displacement": {"n": "n", "theta": "theta", "distance": "distance"},
    "order.posterior_probability": {"alpha": "alpha", "prior": "share"},
    "order.posterior_odds": {"alpha": "alpha", "prior_odds": "epsilon"},
    "order.reidentification": {"alpha": "alpha", "epsilon": "epsilon", "group": "size", "wanted": "small"},
    "order.sample_mallows": {"n": "n", "theta": "theta", "distance": "distance"},
    "order.reference_order": {"groups": "groups"},
    "traffic.sampling_epsilon": {"targets": "k", "sigma": "share", "flood": "small"},
    "traffic.scrambler_epsilon": {
        "targets": "k",
        "sources": "n",
        "sigma": "share",
        "dummies": "small",
        "delta": "delta",
    },
    "bloom.epsilon": {"filters": "small", "bits": "bits", "p": "p", "delta": "delta"},
    "bloom.filling_epsilon": {"bits": "bits", "p": "p", "delta": "delta", "ones": "small"},
    "bloom.pair_epsilon": {"filters": "small", "bits": "bits", "p": "p", "delta": "delta", "target": "target"},
    "bloom.transition_matrix": {"filters": "small", "p": "p"},
    "bloom.ones_matrix": {"filters": "small", "p": "p"},
    "estimate": {"reports": "reports", "protocol": "protocol"},
    "RandomizedResponse": {"k": "k", "epsilon": "epsilon"},
    "SubsetSelection": {"k": "k", "w": "small", "epsilon": "epsilon"},
    "HadamardResponse": {"k": "k", "epsilon": "epsilon"},
    "UnaryEncoding": {"k": "k", "epsilon": "epsilon", "encoding": "encoding"},
    "LocalHashing": {"k": "k", "g": "small", "epsilon": "epsilon"},
    "BitFlipping": {"width": "small", "p": "p"},
    "TargetSampling": {"targets": "k", "sigma": "share", "flood": "small"},
    "Channel": {"matrix": "gain"},
    "Histogram": {"counts": "counts"},
    "Scrambler": {"dummies": "small", "cap": "n"},
    "MallowsShuffle": {"reference": "reference", "theta": "theta", "distance": "distance"},
    "Groups.of": {"groups": "groups", "n": "size"},
    "Domain": {"labels": "reports"},
    "DummyLaw.binomial": {"trials": "n", "p": "share"},
}
"""Public functions and what their arguments may be drawn from."""


LONG = {"bloom.epsilon", "bloom.pair_epsilon", "dp.compose", "dp.parallel"}
"""Those that take up to seconds."""


def call(seed: int, *, quick: bool) -> list[str]:
    """Return what is wrong with the end of one random call of a public function, three of ten with an odd argument."""
    rng = np.random.default_rng([seed, 17])
    pool, names = _numbers(rng), sorted(set(CALLS) - LONG if quick else CALLS)
    name = names[int(rng.integers(len(names)))]
    arguments = {key: pool[source] for key, source in CALLS[name].items()}
    if rng.random() < 0.3:
        arguments[str(rng.choice(sorted(arguments)))] = ODD[int(rng.integers(len(ODD)))]
    function: Any = hs
    for part in name.split("."):
        function = getattr(function, part)
    told = f"call {seed}: {name}({arguments})"
    try:
        found = function(**arguments)
    except HushuffleError as error:
        return [f"{told}: {error}"] if "so one of them is wrong" in str(error) else []
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        return [f"{told}: {error!r}"]
    return [f"{told}: {problem}" for problem in _figures(found)]


def _figures(found: Any) -> Iterator[str]:
    """Yield what no figure may be."""
    if isinstance(found, tuple | list):
        for each in found:
            yield from _figures(each)
    elif isinstance(found, Bound):
        if not found.lower <= found.upper:
            yield f"{found!r} is out of order"
        if found.unit == "probability" and not 0 <= found.lower <= found.upper <= 1:
            yield f"{found!r} is no probability"
    elif isinstance(found, hs.Estimate):
        yield from _figures(found.frequencies)
    elif isinstance(found, float | np.ndarray) and np.asarray(found).dtype.kind == "f" and np.isnan(found).any():
        yield "nan"
