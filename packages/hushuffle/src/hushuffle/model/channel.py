"""`Channel`: a row-stochastic matrix, in floats or in exact rationals."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from hushuffle import _checks

_TOLERANCE = 1e-12


@dataclass(frozen=True, kw_only=True, eq=False)
class Channel:
    """A channel Q(y|x) = `matrix[x, y]`, shape (inputs, outputs); each row is a distribution.

    The matrix holds float64, or `fractions.Fraction` objects when every entry is rational (integers count as rational);
    arithmetic then stays exact. `inputs` and `outputs` name rows and columns and default to 0, 1, ...

    Raises:
        InvalidInputError: `matrix` is not a matrix, an entry is negative, a row does not sum to 1
            (within 1e-12 for floats, exactly for rationals), or the number of labels is wrong.

    >>> import hushuffle as hs
    >>> from fractions import Fraction as F
    >>> hs.Channel(matrix=[[F(3, 4), F(1, 4)], [F(1, 4), F(3, 4)]]).cascade(
    ...     hs.Channel(matrix=[[F(3, 4), F(1, 4)], [F(1, 4), F(3, 4)]])).matrix[0, 0]
    Fraction(5, 8)
    """

    matrix: npt.NDArray[Any]
    inputs: tuple[Hashable, ...] = ()
    outputs: tuple[Hashable, ...] = ()

    def __init__(
        self,
        *,
        matrix: npt.ArrayLike | Sequence[Sequence[Fraction | float]],
        inputs: Sequence[Hashable] | None = None,
        outputs: Sequence[Hashable] | None = None,
    ) -> None:
        array = _as_matrix(matrix)
        rows, columns = array.shape
        names_in = tuple(range(rows)) if inputs is None else tuple(inputs)
        names_out = tuple(range(columns)) if outputs is None else tuple(outputs)
        if len(names_in) != rows:
            _checks.reject("inputs", f"{rows} labels, one for each row", len(names_in))
        if len(names_out) != columns:
            _checks.reject("outputs", f"{columns} labels, one for each column", len(names_out))
        array.flags.writeable = False
        object.__setattr__(self, "matrix", array)
        object.__setattr__(self, "inputs", names_in)
        object.__setattr__(self, "outputs", names_out)

    @property
    def rational(self) -> bool:
        """Whether the entries are exact rationals."""
        return self.matrix.dtype == object

    def cascade(self, then: Channel) -> Self:
        """Return the channel that applies first this channel and then `then`, shape (inputs, outputs of `then`)."""
        if self.matrix.shape[1] != then.matrix.shape[0]:
            _checks.reject("then", f"a channel with {self.matrix.shape[1]} inputs", then.matrix.shape[0])
        if self.rational != then.rational:
            product = self.matrix.astype(np.float64) @ then.matrix.astype(np.float64)
        else:
            product = self.matrix @ then.matrix
        return type(self)(matrix=product, inputs=self.inputs, outputs=then.outputs)

    def table(self) -> str:
        """Return the matrix as plain text with row and column labels, one line for each input.

        >>> import hushuffle as hs
        >>> print(hs.Channel(matrix=[[1, 0], [0, 1]], inputs="ab", outputs=("a:1", "b:1")).table())
           a:1  b:1
        a    1    0
        b    0    1
        """
        cells = [["", *map(str, self.outputs)]]
        cells += [[str(name), *map(str, row)] for name, row in zip(self.inputs, self.matrix, strict=True)]
        widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
        lines = ("  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)) for line in cells)
        return "\n".join(lines)

    def __eq__(self, other: object) -> bool:
        """Whether the shape, the number type (float or rational) and every entry agree (labels are not compared)."""
        if not isinstance(other, Channel):
            return NotImplemented
        return (
            self.matrix.shape == other.matrix.shape
            and self.rational == other.rational
            and bool(np.all(self.matrix == other.matrix))
        )

    __hash__ = None  # type: ignore[assignment]  # an array is not hashable

    def __repr__(self) -> str:
        kind = "rational" if self.rational else "float"
        return f"Channel({self.matrix.shape[0]} inputs, {self.matrix.shape[1]} outputs, {kind})"


def _as_matrix(matrix: npt.ArrayLike | Sequence[Sequence[Fraction | float]]) -> npt.NDArray[Any]:
    raw = np.array(matrix, dtype=np.float64 if getattr(matrix, "dtype", None) == np.float64 else object)
    if raw.ndim != 2 or 0 in raw.shape:
        _checks.reject("matrix", "a matrix with at least one row and one column", f"<shape {raw.shape}>")
    array: npt.NDArray[Any]
    entries = raw.flat if raw.dtype == object else ()  # floats need no check of each entry
    if entries and all(isinstance(entry, Fraction | int | np.integer) for entry in entries):
        array = np.array([[Fraction(int(e)) if not isinstance(e, Fraction) else e for e in row] for row in raw])
        array = array.astype(object)
        bad = [position for position, row in enumerate(array) if sum(row) != 1]
    else:
        if any(isinstance(entry, str | bytes) for entry in entries):
            _checks.reject("matrix", "numbers", "<something else>")
        try:
            array = raw.astype(np.float64)
        except (TypeError, ValueError):
            _checks.reject("matrix", "numbers", "<something else>")
        if not bool(np.isfinite(array).all()):
            _checks.reject("matrix", "finite", "<nan or infinity>")
        bad = np.flatnonzero(np.abs(array.sum(axis=1) - 1.0) > _TOLERANCE * array.shape[1]).tolist()
    if bool(np.any(array < 0)):
        _checks.reject("matrix", "non-negative", "<a negative entry>")
    if bad:
        _checks.reject("matrix", "row-stochastic", f"<row {bad[0]} sums to {float(sum(array[bad[0]]))!r}>")
    return array
