"""What a channel does to a prior: the posteriors it leads to, and how likely each is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from hushuffle import _checks
from hushuffle.model import Channel

if TYPE_CHECKING:
    from hushuffle.questions.qif.gain import Number, Numbers, Table

DIGITS: Final = 12
"""Float posteriors that agree to so many decimals are merged; rational ones only if they are equal."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Hyper:
    """A distribution over posteriors: `outer[i]` is the probability of the posterior `inners[i]`.

    Shapes (posteriors,) and (posteriors, inputs), `Fraction` objects or float64; the posteriors are different
    and sorted, largest first entry first, so that equivalent channels give the same rational hyper-distribution.
    """

    outer: npt.NDArray[Any]
    inners: npt.NDArray[Any]

    def vulnerability(self, gain: Table) -> Number:
        """Return sum_i outer[i] max_w sum_x inners[i, x] gain[w, x], the posterior vulnerability.

        Raises:
            InvalidInputError: a gain whose shape does not fit.

        >>> from hushuffle.questions.qif.channels import reduced_shuffle
        >>> from hushuffle.questions.qif.gain import single_target_gain, uniform_prior
        >>> hyper(uniform_prior(8), reduced_shuffle(3, 2)).vulnerability(single_target_gain(3, 2))
        Fraction(3, 4)
        """
        table = np.array(gain)
        if table.ndim != 2 or table.shape[0] == 0 or table.shape[1] != self.inners.shape[1]:
            _checks.reject("gain", f"a table of shape (guesses, {self.inners.shape[1]})", f"<shape {table.shape}>")
        value = (table @ self.inners.T).max(axis=0) @ self.outer
        return value if self.outer.dtype == object and not isinstance(value, float) else float(value)

    def __eq__(self, other: object) -> bool:
        """Whether outers and inners agree entry by entry."""
        if not isinstance(other, Hyper):
            return NotImplemented
        return np.array_equal(self.outer, other.outer) and np.array_equal(self.inners, other.inners)

    def __repr__(self) -> str:
        return f"Hyper({self.outer.size} posteriors over {self.inners.shape[1]} inputs)"


def hyper(prior: Numbers, channel: Channel) -> Hyper:
    """Return the posteriors of `prior` after looking at `channel`'s output, equal ones merged.

    Exact if prior and channel are rational. In floats posteriors that agree to 12 decimals are merged into
    their mean, so that the mean of all posteriors stays the prior; two that differ by rounding alone may
    still be told apart, which changes no vulnerability.

    Args:
        prior: a distribution over the channel's inputs, shape (inputs,).
        channel: what the guesser sees.

    Raises:
        InvalidInputError: not a distribution, or over another number of inputs.

    Source: McIver, Morgan, Smith, Espinoza, Meinicke 2014; Jurado et al. 2023, section II-A.

    >>> from hushuffle.questions.qif.channels import shuffle
    >>> from hushuffle.questions.qif.gain import uniform_prior
    >>> [str(weight) for weight in hyper(uniform_prior(8), shuffle(3, 2)).outer]
    ['1/8', '3/8', '3/8', '1/8']
    """
    weights = np.array(Channel(matrix=[list(prior)]).matrix[0])
    if channel.matrix.shape[0] != weights.size:
        _checks.reject("prior", f"a distribution over {channel.matrix.shape[0]} inputs", f"<{weights.size} entries>")
    joint = weights[:, None] * channel.matrix
    exact = joint.dtype == object and all(not isinstance(entry, float) for entry in joint.flat)
    joint = joint if exact else joint.astype(np.float64)
    merged: dict[tuple[Number, ...], npt.NDArray[Any]] = {}
    for column in joint.T:
        weight = column.sum()
        if weight:
            inner = column / weight
            key = tuple(inner if exact else np.round(inner, DIGITS))
            merged[key] = merged[key] + column if key in merged else column
    columns = [merged[key] for key in sorted(merged, reverse=True)]
    outer = np.array([column.sum() for column in columns])
    return Hyper(outer=outer, inners=np.array([column / column.sum() for column in columns]))


def parallel(first: Channel, second: Channel) -> Channel:
    """Return the channel that shows the outputs of both, drawn independently given the input.

    Entry (x, (y, z)) is first[x, y] second[x, z]; exact if both are rational, else in floats.

    Raises:
        InvalidInputError: different numbers of inputs.

    Source: Alvim, Chatzikokolakis, McIver, Morgan, Palamidessi, Smith, The Science of Quantitative
    Information Flow (2020), chapter 8.

    >>> from fractions import Fraction as F
    >>> coin = Channel(matrix=[[F(3, 4), F(1, 4)], [F(1, 4), F(3, 4)]])
    >>> [str(entry) for entry in parallel(coin, coin).matrix[0]]
    ['9/16', '3/16', '3/16', '1/16']
    """
    inputs = first.matrix.shape[0]
    if second.matrix.shape[0] != inputs:
        _checks.reject("second", f"a channel with {inputs} inputs", second.matrix.shape[0])
    pair = (first.matrix, second.matrix)
    left, right = pair if first.rational == second.rational else tuple(m.astype(np.float64) for m in pair)
    matrix = (left[:, :, None] * right[:, None, :]).reshape(inputs, -1)
    outputs = [(y, z) for y in first.outputs for z in second.outputs]
    return Channel(matrix=matrix, inputs=first.inputs, outputs=outputs)
