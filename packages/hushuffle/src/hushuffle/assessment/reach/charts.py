"""Charts of a reach study (with Bloom filters) for other flip probabilities and other sizes of the filters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt

from hushuffle.assessment.charts import VISIBLE
from hushuffle.assessment.findings import Questions
from hushuffle.assessment.reach.privacy import Design, central
from hushuffle.errors import NumericalError
from hushuffle.estimation.reach import Question, planned
from hushuffle.model import Bound, Chart, Series, number
from hushuffle.questions import bloom
from hushuffle.specification import Audiences

_NOISES: Final = (0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.4)
_FACTORS: Final = (0.1, 0.3, 3.0, 10.0)
_FEWEST, _MOST = 100, 10**8


def charts(
    questions: Questions, audiences: Audiences, design: Design, *, progress: Callable[[float], None]
) -> tuple[Chart, ...]:
    """Epsilon and error against the flip probability and, at fixed epsilon, against filter size."""
    noises = sorted({*_NOISES, design.p})
    sizes = sorted({min(max(round(design.bits * each), _FEWEST), _MOST) for each in _FACTORS} - {design.bits})
    steps = len(noises) + 2 * len(sizes)
    other_noises = [replace(design, p=p) for p in noises]

    def against_noise() -> Chart:
        figures = []
        for done, other in enumerate(other_noises):
            progress(done / steps)
            narrow = other.p == design.p or design.hashes > 1
            figures.append(central(other) if narrow else other.curve.within(other.delta, VISIBLE))
        return _noise_chart(noises, figures, design)

    topic = "The chart of privacy against the flip probability"
    privacy = questions.ask("privacy-against-flips", topic, against_noise)
    here = _errors(audiences, other_noises, noises, "flip-probability", "flip probability p", here=design.p)
    others = questions.ask(
        "flips-against-bits",
        "The charts for Bloom filters of other sizes",
        lambda: _size_charts(audiences, design, sizes, lambda done: progress((len(noises) + 2 * done) / steps)),
    )
    return (*(() if privacy is None else (privacy,)), here, *(others or ()))


def _size_charts(
    audiences: Audiences, design: Design, sizes: Sequence[int], done: Callable[[int], None]
) -> tuple[Chart, ...]:
    """The flip probability and the errors against the size of the filters, at fixed epsilon."""
    epsilon = central(design).upper
    if epsilon == 0:  # at this delta, every flip probability suffices
        return ()
    other_sizes = [design]
    for step, size in enumerate(sizes):
        done(step)
        least = bloom.estimate_flip_prob(
            filters=design.filters, bits=size, epsilon=epsilon, delta=design.delta, hashes=design.hashes
        )
        other_sizes.append(replace(design, bits=size, p=least.p))
    other_sizes.sort(key=lambda other: other.bits)
    bits = [other.bits for other in other_sizes]
    flips = Series.through("least p", bits, [other.p for other in other_sizes])
    return (
        Chart(
            key="flips-against-bits",
            title="Flip probability against the size of the Bloom filters",
            caption=f"Larger filters need fewer flips for the same epsilon of {number(epsilon)}.",
            x_label="bits of each filter",
            y_label="flip probability p",
            series=(flips,),
            x_log=True,
            here=float(design.bits),
        ),
        _errors(
            audiences, other_sizes, bits, "bits", "bits of each filter, same epsilon", here=design.bits, x_log=True
        ),
    )


def _noise_chart(noises: Sequence[float], figures: Sequence[Bound], design: Design) -> Chart:
    return Chart(
        key="privacy-against-flips",
        title="Privacy against the flip probability",
        caption=f"Epsilon at delta = {design.delta:g} falls as p grows; smaller is more private.",
        x_label="flip probability p",
        y_label="epsilon (nats)",
        series=(Series.through("one person added or removed", noises, figures),),
        y_log=True,
        here=design.p,
    )


def _errors(
    audiences: Audiences,
    designs: Sequence[Design],
    x: Sequence[float],
    key: str,
    x_label: str,
    *,
    here: float,
    x_log: bool = False,
) -> Chart:
    """Standard errors of total reach and of the largest overlap, where estimates exist."""
    everyone = tuple(range(designs[0].filters))
    lines = [_line("reach of all together", audiences.people, designs, x, "reach", everyone)]
    if len(everyone) > 1:
        pair = _largest_pair(audiences.people, len(everyone))
        label = " and ".join(audiences.population.labels[each] for each in pair)
        lines.append(_line(label, audiences.people, designs, x, "overlap", pair))
    return Chart(
        key=f"accuracy-against-{key}",
        title=f"Accuracy against the {'flip probability' if not x_log else 'size of the filters'}",
        caption="Predicted standard errors. Points are missing if filters are too full or noisy to estimate.",
        x_label=x_label,
        y_label="standard error (people)",
        series=tuple(line for line in lines if line.x),
        x_log=x_log,
        y_log=True,
        here=float(here),
    )


def _line(
    label: str,
    people: npt.NDArray[np.int64],
    designs: Sequence[Design],
    x: Sequence[float],
    question: Question,
    publishers: tuple[int, ...],
) -> Series:
    points = []
    for place, design in zip(x, designs, strict=True):
        try:
            plan = planned(
                people, protocol=design.protocol, question=question, publishers=publishers, hashes=design.hashes
            )
        except NumericalError:
            continue
        points.append((float(place), plan.standard_error))
    return Series.through(label, (place for place, _ in points), (error for _, error in points))


def _largest_pair(people: npt.NDArray[np.int64], k: int) -> tuple[int, int]:
    """Positions of the two publishers whose audiences have the most people in common."""
    sets = np.arange(people.size)
    pairs = [(a, b) for a in range(k) for b in range(a + 1, k)]
    return max(pairs, key=lambda pair: int(people[(sets >> pair[0] & sets >> pair[1] & 1) == 1].sum()))
