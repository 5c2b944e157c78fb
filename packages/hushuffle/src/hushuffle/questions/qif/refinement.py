"""Decide whether one channel never leaks more than another, with a proof of the answer.

`second` refines `first` if second = first R for some post-processing R; then `second` leaks at most as much as `first`
for every prior and gain. A linear program computes the deficiency: the smallest distance of `second` from first R over
all R, and (by duality) a gain function whose vulnerability is larger after `second` than after `first` by that
distance. R and the gain function are evaluated again in exact rationals before a result is returned.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import scipy  # its modules come when they are first used

from hushuffle import _checks
from hushuffle.errors import NumericalError
from hushuffle.model import Bound, Channel
from hushuffle.model.citation import QIF, Citation
from hushuffle.numerics.exact import downwards, solve, upwards
from hushuffle.questions.qif.channels import merge_proportional_columns
from hushuffle.questions.qif.gain import uniform_prior

if TYPE_CHECKING:
    from hushuffle.numerics.binomial import Floats

CORIACEOUS: Final = Citation(
    key="mciver2014",
    text="A. McIver, C. Morgan, G. Smith, B. Espinoza, L. Meinicke, Abstract channels and their robust "
    "information-leakage ordering, POST (2014)",
)
LE_CAM: Final = Citation(
    key="lecam1964",
    text="L. Le Cam, Sufficiency and approximate sufficiency, Annals of Mathematical Statistics 35 (1964)",
)

ENTRIES_LIMIT: Final = 5_000
"""Maximum number of entries of the post-processing and of `second` (about ten seconds if dense)."""

EXACT_LIMIT: Final = 1_000
"""Maximum number of positive entries of a post-processing that is computed in exact rationals."""

TOLERANCE: Final = 1e-9
"""Largest deficiency at which a float channel `second` counts as a refinement of `first`."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Separation:
    """Proof that channel `second` does not refine channel `first`, the arguments of `refines`.

    For this prior and this gain function, the posterior vulnerability of `second` is larger than that of `first`, by
    `gap` > 0. `prior` is uniform, shape (inputs,); `gain` has values in [0, 1] and a guess for each output of `second`.
    """

    prior: npt.NDArray[Any]
    gain: npt.NDArray[Any]
    gap: Fraction


@dataclass(frozen=True, kw_only=True, eq=False)
class Refinement:
    """The answer of `refines`, whether channel `second` refines channel `first`, with a proof.

    For a channel R, take the total variation between each row of `second` and that row of `first.cascade(R)`, averaged
    over the rows. `deficiency` is its minimum over all R. It equals the largest difference of posterior vulnerability
    between `second` and `first` under the uniform prior, over all gains in [0, 1]. If `holds`, `post_processing` is an
    R that attains the upper bound of `deficiency`; if not, `separation` proves its lower bound. If `exact`, channels
    and proof are rational: `first.cascade(R)` equals `second` in every entry, or the gap of `separation` is exact.
    Otherwise the answer holds up to the tolerance given to `refines`.
    """

    holds: bool
    exact: bool
    deficiency: Bound
    post_processing: Channel | None = None
    separation: Separation | None = None

    def __bool__(self) -> bool:
        return self.holds


def refines(first: Channel, second: Channel, *, tolerance: float = TOLERANCE) -> Refinement:
    """Return whether `second` is `first` followed by some post-processing R: `first.cascade(R)` equals `second`.

    This holds if and only if `second` leaks at most as much as `first` for every prior and gain (Jurado et al. 2023,
    Theorem 4). For rational channels the answer is usually exact (`exact` of the result).

    Args:
        first: the channel that is to be post-processed.
        second: the channel that should result.
        tolerance: `Refinement.deficiency` up to which `second` counts as refining `first` (for float channels).

    Raises:
        InvalidInputError: different numbers of inputs (such channels are not comparable), more than
            `ENTRIES_LIMIT` entries, or a tolerance not in (0, 1).
        NumericalError: the linear program does not decide.

    Source: Jurado et al. 2023, Theorem 4; McIver, Morgan, Smith, Espinoza, Meinicke 2014; Le Cam 1964.

    >>> from fractions import Fraction
    >>> import hushuffle as hs
    >>> N, NS = hs.qif.noise(2, 2, Fraction(3, 4)), hs.qif.noise_then_shuffle(2, 2, Fraction(3, 4))
    >>> bool(hs.qif.refines(N, NS)), bool(hs.qif.refines(NS, N)), str(hs.qif.refines(NS, N).separation.gap)
    (True, False, '1/8')
    """
    _checks.of_type("first", first, Channel)
    _checks.of_type("second", second, Channel)
    allowed = _checks.probability("tolerance", tolerance, low_open=True, high_open=True)
    _check_comparable(first, second)
    if max(first.matrix.shape) * second.matrix.shape[1] > ENTRIES_LIMIT:
        _checks.reject("first, second", f"small enough for {ENTRIES_LIMIT:,} entries", (first, second))
    processing, gain, support = _programme(first, second)
    rational = first.rational and second.rational
    if rational and np.count_nonzero(support) <= EXACT_LIMIT:
        solved = _exact_processing(first, second, support)
        if solved is not None:
            deficiency = Bound.exact(0.0, unit="probability", sources=(QIF.at("Theorem 4"), LE_CAM))
            return Refinement(holds=True, exact=True, deficiency=deficiency, post_processing=solved)
    ours, theirs = _rows(first), _rows(second)
    apart = np.abs(theirs - ours @ _rows(Channel(matrix=processing))).sum(axis=1) / 2  # total variation of each row
    distance = Fraction(sum(apart)) / len(apart)
    separation = _separation(ours, theirs, gain)
    gap = max(Fraction(0), separation.gap)
    sources = (LE_CAM, CORIACEOUS)
    deficiency = Bound(
        lower=downwards(gap), upper=upwards(distance), kind="bracket", unit="probability", sources=sources
    )
    if gap > (0 if rational else allowed):
        return Refinement(holds=False, exact=rational, deficiency=deficiency, separation=separation)
    if distance > allowed:
        message = f"Refinement is undecided: the deficiency is {deficiency}. Use a larger tolerance."
        raise NumericalError(message)
    labels = {"inputs": first.outputs, "outputs": second.outputs}
    return Refinement(
        holds=True, exact=False, deficiency=deficiency, post_processing=Channel(matrix=processing, **labels)
    )


def equivalent(first: Channel, second: Channel, *, tolerance: float = TOLERANCE) -> bool:
    """Return whether the channels leak the same for every prior and gain: each refines the other.

    For rational channels, the reduced forms decide exactly; else `refines` does in both directions, up to `tolerance`.

    Raises:
        InvalidInputError, NumericalError: the reasons are those of `refines`.

    Source: McIver, Morgan, Smith, Espinoza, Meinicke 2014 (reduced forms).

    >>> import hushuffle as hs
    >>> hs.qif.equivalent(hs.qif.shuffle(3, 2), hs.qif.reduced_shuffle(3, 2))
    True
    """
    _checks.of_type("first", first, Channel)
    _checks.of_type("second", second, Channel)
    _check_comparable(first, second)
    if first.rational and second.rational:
        left, right = (merge_proportional_columns(channel).matrix.T.tolist() for channel in (first, second))
        return sorted(left) == sorted(right)
    return bool(refines(first, second, tolerance=tolerance)) and bool(refines(second, first, tolerance=tolerance))


def _check_comparable(first: Channel, second: Channel) -> None:
    inputs = first.matrix.shape[0]
    if second.matrix.shape[0] != inputs:
        hint = "Channels from different inputs are not comparable."
        _checks.reject("second", f"a channel with {inputs} inputs", second.matrix.shape[0], hint)


def _programme(first: Channel, second: Channel) -> tuple[Floats, Floats, npt.NDArray[np.bool_]]:
    """Return the closest post-processing, the best gain (the multipliers), and where R is positive.

    Minimise sum s over R, s >= 0 with second - first R <= s and rows of R summing to 1.
    """
    ours, theirs = first.matrix.astype(np.float64), second.matrix.astype(np.float64)
    (inputs, middle), outputs = ours.shape, theirs.shape[1]
    slack = inputs * outputs
    csr_array, eye_array, kron = scipy.sparse.csr_array, scipy.sparse.eye_array, scipy.sparse.kron
    every = eye_array(outputs, format="csr")
    below = scipy.sparse.hstack([-kron(csr_array(ours), every), -eye_array(slack)], format="csr")
    sums = scipy.sparse.hstack(
        [kron(eye_array(middle), np.ones((1, outputs))), csr_array((middle, slack))], format="csr"
    )
    solution = scipy.optimize.linprog(
        np.concatenate([np.zeros(middle * outputs), np.ones(slack)]),
        A_ub=below,
        b_ub=-theirs.ravel(),
        A_eq=sums,
        b_eq=np.ones(middle),
        method="highs-ds",
    )
    if solution.x is None:  # pragma: no cover - the program is feasible and bounded
        message = f"The linear programme was not solved: {solution.message}"
        raise NumericalError(message)
    raw = np.maximum(solution.x[: middle * outputs].reshape(middle, outputs), 0.0)
    gain = np.clip(-solution.ineqlin.marginals.reshape(inputs, outputs).T, 0.0, 1.0)
    return raw / raw.sum(axis=1, keepdims=True), gain, raw > 1e-9


def _exact_processing(first: Channel, second: Channel, support: npt.NDArray[np.bool_]) -> Channel | None:
    """Return R >= 0 in rationals, positive only on `support`, with first R = second; None if the search fails."""
    places = {place: number for number, place in enumerate(zip(*np.nonzero(support), strict=True))}
    middle, outputs = support.shape
    equations: list[tuple[dict[int, Fraction], Fraction]] = [
        ({places[z, y]: Fraction(1) for y in range(outputs) if support[z, y]}, Fraction(1)) for z in range(middle)
    ]
    for x, y in itertools.product(range(second.matrix.shape[0]), range(outputs)):
        terms = {places[z, y]: first.matrix[x, z] for z in range(middle) if support[z, y] and first.matrix[x, z]}
        equations.append((terms, second.matrix[x, y]))
    solution = solve(equations, unknowns=len(places))
    if solution is None or min(solution) < 0:
        return None
    matrix = [[solution[places[z, y]] if support[z, y] else Fraction(0) for y in range(outputs)] for z in range(middle)]
    processing = Channel(matrix=matrix, inputs=first.outputs, outputs=second.outputs)
    assert first.cascade(processing) == second
    return processing


def _rows(channel: Channel) -> npt.NDArray[Any]:
    """Return the matrix in rationals (floats are rationals), each row summing to 1 exactly."""
    rows = [[Fraction(entry) for entry in row] for row in channel.matrix.tolist()]
    return np.array([[entry / sum(row) for entry in row] for row in rows])


def _separation(ours: npt.NDArray[Any], theirs: npt.NDArray[Any], gain: Floats) -> Separation:
    """Return the gain with its gap, its entries rounded to simple fractions and the gap evaluated exactly."""
    simple = np.array([[Fraction(entry).limit_denominator(10**6) for entry in row] for row in gain.tolist()])
    gap = sum((simple @ theirs).max(axis=0)) - sum((simple @ ours).max(axis=0))
    return Separation(prior=uniform_prior(ours.shape[0]), gain=simple, gap=Fraction(gap) / ours.shape[0])
