"""The axioms of PIE privacy on channels (Theorems 3.5 and 3.6), and the size of a report in bits (section 4.4)."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import LocalHashing, MatrixRandomizer, Mechanism, RandomizedResponse
from hushuffle.mechanisms.shufflers import NoShuffle
from hushuffle.model import Bound, Cell, Chart, Report, Series, Table, number
from hushuffle.model.citation import PIE
from hushuffle.papers.base import Request, Target, claim
from hushuffle.papers.murakami2021.frequencies import VALUES
from hushuffle.questions import pie

Floats = npt.NDArray[np.float64]

_PEOPLE: Final = 6
_K: Final = 4
_EPSILON: Final = 2.0
_WEIGHTS: Final = tuple(step / 10 for step in range(11))
_TRIALS: Final = 40
_SLACK: Final = 1e-9
_THETA: Final = 0.5
_BUCKETS: Final = (2, 4, 1024, 2**16, 10**6, 10**8)


def axioms(request: Request) -> Report:
    plain = _response(_EPSILON)
    before = alpha(plain)
    rng = np.random.default_rng(request.seed)
    after: list[Bound] = []
    for trial in range(_TRIALS):
        request.tell("post-processings", 0.5 * trial / _TRIALS)
        after.append(alpha(plain @ rng.dirichlet(np.full(1 + trial % 6, 0.4), size=_K)))
    turned = np.roll(plain, 1, axis=1)  # each value has one report, as in `plain`, but another report
    weaker = _response(_EPSILON / 2)
    hidden = [alpha(w * plain + (1 - w) * turned) for w in _WEIGHTS]
    shown = [alpha(np.hstack([w * plain, (1 - w) * turned])) for w in _WEIGHTS]
    unequal = [alpha(np.hstack([w * plain, (1 - w) * weaker])) for w in _WEIGHTS]
    least = alpha(weaker)
    means = [w * before.upper + (1 - w) * least.upper for w in _WEIGHTS]
    return Report(
        key="murakami2021/theorem-3-5",
        title="Bits about the sender after post-processing and in mixtures",
        question="Does PIE privacy survive post-processing, and a random choice among mechanisms?",
        claims=(
            claim(
                "Theorem 3.5",
                "Whatever is done to a report afterwards, alpha does not grow.",
                all(bound.lower <= before.upper + _SLACK for bound in after),
                f"{_TRIALS} random post-processings leave {number(min(bound.upper for bound in after), digits=3)} to "
                f"{number(max(bound.upper for bound in after), digits=3)} of {number(before.upper)} bits.",
                quote="guarantees that post-processing, which can be performed by a data collector or an adversary, "
                "cannot break",
            ),
            claim(
                "Theorem 3.6",
                "A random choice between two mechanisms with alpha has alpha.",
                all(bound.lower <= before.upper + _SLACK for bound in (*hidden, *shown)),
                f"With a hidden choice, alpha is as low as {number(min(bound.upper for bound in hidden), digits=3)} "
                f"bits of {number(before.upper)}, with a public choice {number(max(bound.upper for bound in shown))}.",
                quote="allows users to randomly choose which obfuscation mechanism to use",
            ),
        ),
        answers=(
            "If the two alphas differ, the mixture has no more than their mean, even if the choice is public: "
            f"{number(unequal[5].upper)} bits at one half, between {number(least.upper)} and {number(before.upper)}. "
            "The theorem's alpha is the larger of the two.",
        ),
        settings=(
            ("people, values", f"{_PEOPLE}, {_K}"),
            (
                "mechanisms",
                f"randomized response, epsilon = {_EPSILON:g}; the same with other names for the reports; the one of "
                f"different alpha: epsilon = {_EPSILON / 2:g}",
            ),
            ("seed", str(request.seed)),
        ),
        charts=(
            Chart(
                key="mixtures",
                title="Bits about the sender in a random mixture of two mechanisms",
                caption="Two mechanisms of equal alpha, and two of different alpha; capacities, certified.",
                x_label="probability of the first mechanism",
                y_label="alpha (bits)",
                series=(
                    Series.through("equal, public choice", _WEIGHTS, [bound.upper for bound in shown]),
                    Series.through("equal, hidden choice", _WEIGHTS, [bound.upper for bound in hidden]),
                    Series.through("different, public choice", _WEIGHTS, [bound.upper for bound in unequal]),
                    Series.through("mean of the two alphas", _WEIGHTS, means),
                ),
            ),
        ),
        tables=(
            Table(
                key="mixtures",
                title="Mixtures",
                caption="Bits about the sender: the largest over all distributions of values.",
                columns=("weight", "equal, public choice", "equal, hidden choice", "different, public choice", "mean"),
                rows=tuple(zip(_WEIGHTS, shown, hidden, unequal, means, strict=True)),
            ),
        ),
        citations=(PIE.at("Theorems 3.5 and 3.6"),),
    )


def alpha(matrix: Floats) -> Bound:
    """Return alpha of the channel `matrix`, shape (values, reports), for `_PEOPLE` people, in bits."""
    return pie.alpha(Protocol(randomizer=MatrixRandomizer(matrix), shuffler=NoShuffle(), n=_PEOPLE))


def _response(epsilon: float) -> Floats:
    matrix: Floats = RandomizedResponse(k=_K, epsilon=epsilon).channel().matrix.astype(np.float64)
    return matrix


def cost(_request: Request) -> Report:
    response = RandomizedResponse(k=VALUES, epsilon=math.log1p(VALUES))
    hashed = {g: LocalHashing(k=VALUES, g=g, epsilon=math.log1p(g)) for g in _BUCKETS}
    plain = response.layout.bits
    whole = {g: mechanism.layout.bits for g, mechanism in hashed.items()}
    larger = [g for g in _BUCKETS if g > VALUES]
    return Report(
        key="murakami2021/section-4-bits",
        title="What a report costs to send",
        question="How many bits does a report take, by mechanism?",
        claims=(
            claim(
                "Section 4.4",
                "Randomized response costs O(log k) bits, local hashing O(log g).",
                min(whole.values()) < plain,
                f"Randomized response takes {plain:.1f} bits. Local hashing into {_BUCKETS[0]} buckets takes "
                f"{whole[_BUCKETS[0]]:.1f}: the bucket is one of them, the hash function the others.",
                quote="the communication cost of the RR and GLH can be expressed as",
                reason="The report is (h, y) by (3), and where two values collide with probability 1/g at most there "
                "are k/g functions or more (Stinson 1994). With a public function for each person log g holds: y alone "
                f"takes {math.log2(_BUCKETS[0]):.0f}.",
            ),
            claim(
                "Section 4.4",
                "If k < g, randomized response is cheaper than local hashing.",
                all(whole[g] > plain for g in larger),
                f"With g = {larger[0]:,}: {plain:.1f} against {whole[larger[0]]:.1f} bits, and against "
                f"{math.log2(larger[0]):.1f} for the bucket alone.",
                quote="the RR is better than the GLH in terms of the communication cost",
            ),
        ),
        settings=(("values", f"{VALUES:,}"), ("theta", f"{_THETA:g}: local epsilon ln(1 + g)")),
        tables=(
            Table(
                key="bits",
                title="Bits of one report",
                caption="Bits of a packed report: the logarithm of the number of possible values of its columns.",
                columns=("mechanism", "buckets", "bits of the hash", "bits of the value or bucket", "bits"),
                rows=(
                    _row("randomized response", "", response),
                    *(_row("local hashing", g, mechanism) for g, mechanism in hashed.items()),
                ),
            ),
        ),
        citations=(PIE.at("section 4.4"),),
    )


def _row(name: str, buckets: str | int, mechanism: Mechanism) -> tuple[Cell, ...]:
    layout = mechanism.layout
    last = math.log2(layout.limits[-1])
    return name, buckets, round(layout.bits - last, 1), round(last, 1), round(layout.bits, 1)


TARGETS: Final = (
    Target(name="murakami2021/theorem-3-5", title="Post-processing and mixtures", build=axioms, seconds=3),
    Target(name="murakami2021/section-4-bits", title="What a report costs to send", build=cost),
)
