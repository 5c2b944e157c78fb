"""The traffic paper's figure 6, without simulation: exact probabilities of all outputs of a small scrambler."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from hushuffle.model import Chart, Report, Series, Table, number
from hushuffle.model.citation import LADJEL
from hushuffle.papers.base import Request, Target, claim
from hushuffle.questions import traffic

Floats: TypeAlias = npt.NDArray[np.float64]

RUNS: Final = 7e8
_RARE: Final = 1e-3
_SAME: Final = 0.15
"""Probabilities with a smaller relative difference count as essentially the same."""
_DRAWN: Final = 300
_INPUTS: Final = {"uniform": (5, 5, 5, 5), "skewed": (13, 4, 2, 1), "all at one target": (20, 0, 0, 0)}


@dataclass(frozen=True, kw_only=True, eq=False)
class Pair:
    """Two neighbouring inputs, with the probability of every output under each of them, shape (outputs,)."""

    first: Floats
    second: Floats

    @classmethod
    def of(cls, own: Sequence[int], *, sigma: float, dummies: int) -> Pair:
        """Return inputs that differ in one source: target 0 or the last; an output counts messages of T - 1 targets."""
        targets, total = len(own), sum(own) + dummies
        lie = sigma / targets
        uniform = [1 / targets] * targets
        rows = [uniform] * dummies
        for target, count in enumerate(own):
            rows += [_row(target, targets, sigma, lie)] * (count - (target == 0))
        law = np.zeros((total + 1,) * (targets - 1))
        law[(0,) * (targets - 1)] = 1.0
        for row in rows:
            law = _step(law, row)
        first, second = (_step(law, _row(target, targets, sigma, lie)) for target in (0, targets - 1))
        inside = np.indices(law.shape).sum(axis=0) <= total
        return cls(first=first[inside], second=second[inside])

    @property
    def log_ratios(self) -> Floats:
        return np.asarray(np.abs(np.log(self.first) - np.log(self.second)))

    def delta(self, epsilon: float) -> float:
        """Return delta at epsilon: the larger of the divergences in both directions."""
        growth = math.exp(epsilon)
        pairs = ((self.first, self.second), (self.second, self.first))
        return max(float(np.maximum(a - growth * b, 0.0).sum()) for a, b in pairs)

    def above(self, level: float) -> float:
        """Return the probability, under the first input, of an output whose log-ratio is above `level`."""
        return float(self.first[self.log_ratios > level].sum())

    def unseen(self, runs: float) -> float:
        """Return the expected number of outputs that do not occur in `runs` runs on the first input."""
        return float(np.exp(runs * np.log1p(-np.minimum(self.first, 1 - 1e-16))).sum())


def _row(target: int, targets: int, sigma: float, lie: float) -> list[float]:
    return [1 - sigma + lie if other == target else lie for other in range(targets)]


def _step(law: Floats, row: Sequence[float]) -> Floats:
    result = row[-1] * law
    for axis, chance in enumerate(row[:-1]):
        later, earlier = [slice(None)] * law.ndim, [slice(None)] * law.ndim
        later[axis], earlier[axis] = slice(1, None), slice(None, -1)
        result[tuple(later)] += chance * law[tuple(earlier)]
    return result


def output_study(request: Request, *, inputs: Mapping[str, tuple[int, ...]], sigma: float, dummies: int) -> Report:
    """Return the study of `inputs`: each counts the sources by true target. The chart of the first has all outputs."""
    pairs = {}
    for place, (name, own) in enumerate(inputs.items()):
        request.tell(name, place / len(inputs))
        pairs[name] = Pair.of(own, sigma=sigma, dummies=dummies)
    first_name, own = next(iter(inputs.items()))
    targets, n = len(own), sum(own)
    main = pairs[first_name]
    worst = {name: float(pair.log_ratios.max()) for name, pair in pairs.items()}
    seldom_drawn = int(np.count_nonzero(main.first * RUNS < 10))
    levels = (0.5, 1.0, 1.5, 2.0)
    columns = ("input", "largest log-ratio", *(f"above {x:g}" for x in levels), *(f"delta at {x:g}" for x in levels))
    certified = {e: traffic.scrambler_epsilon(targets, n, sigma, dummies, delta=e) for e in (1e-2, 1e-4, 1e-6)}
    rare = {name: pair.above(worst[name] * 2 / 3) for name, pair in pairs.items()}
    bodies = {level: [pair.above(level) for pair in pairs.values()] for level in levels[:2]}
    spread = {level: [pair.delta(level) for pair in pairs.values()] for level in (1.0, 2.0)}
    return Report(
        key="ladjel2021/figure-6",
        title="Every output of a small scrambler, with its exact probability",
        question=f"{n} messages, {dummies} dummies, {targets} targets, sigma = {sigma:g}: which outputs "
        "distinguish two inputs, and how often do they occur?",
        claims=(
            claim(
                "Figure 6",
                "The largest log-ratios belong to very rare outputs.",
                max(rare.values()) < _RARE,
                f"The largest is {number(worst[first_name])}; outputs above two thirds of it occur with probability "
                f"{', '.join(f'{value:.2g} ({name})' for name, value in rare.items())}.",
                quote="correspond to very rare outputs. This was observed consistently across all inputs we tried.",
            ),
            claim(
                "Appendix D",
                "Nearly every output is drawn.",
                main.unseen(RUNS) < 0.05 * main.first.size,
                f"There are exactly {main.first.size:,} outputs. In {RUNS:.0e} runs on the {first_name} input "
                f"{main.unseen(RUNS):,.0f} are expected never to occur, and {seldom_drawn:,} less than ten times. "
                "Counts cannot estimate their log-ratios, the largest among them. Enumeration needs no runs.",
                quote="The total number of runs are set such that nearly all possible outputs are drawn at least once.",
            ),
            claim(
                "Appendix D",
                "The overall shape of the distribution of log-ratios is essentially the same for all inputs.",
                all(max(values) <= (1 + _SAME) * min(values) for values in bodies.values()),
                "; ".join(
                    f"P(log-ratio > {level:g}) is "
                    + ", ".join(f"{value:.3f} ({name})" for value, name in zip(values, pairs, strict=True))
                    for level, values in bodies.items()
                )
                + f". The largest is {number(min(worst.values()))} to {number(max(worst.values()))}.",
                quote="the choice of input has a negligible impact on the results: although the probability of "
                "individual outputs obviously depend on the input, the overall shape … remains essentially the same",
                reason="The tail, on which privacy rests, differs: delta at epsilon = 2 is "
                + ", ".join(f"{value:.2g} ({name})" for value, name in zip(spread[2.0], pairs, strict=True))
                + ".",
            ),
        ),
        answers=(
            f"Over all inputs, epsilon is {certified[1e-4]} at delta = 1e-4. Pure epsilon is "
            f"{number(traffic.sampling_epsilon(targets, sigma).upper)} for any number of dummies.",
        ),
        settings=(
            *((f"own targets, {name}", ", ".join(map(str, counts))) for name, counts in inputs.items()),
            ("changed message", "from the first target to the last"),
        ),
        tables=(
            Table(
                key="tails",
                title="Probability of outputs with a large log-ratio",
                caption="Exact probability, under the first input, of a log-ratio above the level, and delta of the "
                "pair.",
                columns=columns,
                rows=tuple(
                    (name, worst[name], *map(pair.above, levels), *map(pair.delta, levels))
                    for name, pair in pairs.items()
                ),
            ),
            Table(
                key="certified",
                title="Certified epsilon over all inputs",
                caption="Certified bounds on the epsilon of this scrambler.",
                columns=("delta", "epsilon"),
                rows=tuple(certified.items()),
            ),
        ),
        charts=_charts(pairs, first_name),
        citations=(LADJEL.at("Figure 6"), LADJEL.at("Appendix D")),
    )


def _charts(pairs: dict[str, Pair], name: str) -> tuple[Chart, ...]:
    main = pairs[name]
    order = np.argsort(-main.log_ratios, kind="stable")
    ranks = np.unique(np.linspace(0, order.size - 1, _DRAWN).astype(int))
    places = order[ranks]
    x = tuple((ranks + 1.0).tolist())

    def line(label: str, values: Floats) -> Series:
        return Series.through(label, x, values.tolist())

    at = np.linspace(0.0, max(float(pair.log_ratios.max()) for pair in pairs.values()), 80)[:-1].tolist()
    tails = {key: tuple(pair.above(level) for level in at) for key, pair in pairs.items()}
    return (
        Chart(
            key="log-ratios",
            title="Log-ratios, largest first",
            caption=f"Input: {name}. {order.size:,} outputs, every {math.ceil(order.size / _DRAWN)}th drawn.",
            x_label="rank of the output",
            y_label="|ln P1/P2|",
            series=(line("log-ratio", main.log_ratios[places]),),
        ),
        Chart(
            key="occurrences",
            title=f"Expected occurrences in {RUNS:.0e} runs, in the same order",
            caption="Both inputs of the pair; below 1 an output is not expected to be seen.",
            x_label="rank of the output",
            y_label="expected occurrences",
            series=(line("first input", RUNS * main.first[places]), line("second input", RUNS * main.second[places])),
            y_log=True,
        ),
        Chart(
            key="tails",
            title="Probability of an output whose log-ratio is above a level",
            caption="Exact.",
            x_label="level (nats)",
            y_label="probability",
            series=tuple(Series.through(key, at, y) for key, y in tails.items()),
            y_log=True,
        ),
    )


every_output: Final = partial(output_study, inputs=_INPUTS, sigma=0.2, dummies=20)

TARGETS: Final = (
    Target(
        name="ladjel2021/figure-6",
        title="Every output of a small scrambler by exact enumeration, in place of 7e8 runs",
        build=every_output,
        seconds=2.0,
    ),
)
