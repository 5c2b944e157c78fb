"""`Domain`: the k values that a person may have, and the codes 0..k-1 of these values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from hushuffle import _checks


@dataclass(frozen=True, kw_only=True)
class Domain:
    """The set of a person's possible values: k >= 2 distinct labels; value `labels[i]` has code i.

    >>> import hushuffle as hs
    >>> hs.Domain(labels=("no", "yes")).encode(["yes", "no", "yes"]).tolist()
    [1, 0, 1]
    """

    labels: tuple[str, ...]

    def __post_init__(self) -> None:
        several = isinstance(self.labels, Iterable) and not isinstance(self.labels, str)
        if not several or not all(issubclass(kind, str) for kind in set(map(type, self.labels))):
            _checks.reject("labels", "several texts", f"<{type(self.labels).__name__}>")
        object.__setattr__(self, "labels", tuple(self.labels))
        if len(self.labels) < 2:
            _checks.reject("labels", "at least 2 labels", len(self.labels))
        if len(set(self.labels)) != len(self.labels):
            _checks.reject("labels", "distinct", self.labels)

    @classmethod
    def of_size(cls, k: int) -> Self:
        """Return the domain of `k` values with labels "0" to str(k - 1)."""
        return cls(labels=tuple(map(str, range(_checks.integer("k", k, low=2)))))

    @property
    def k(self) -> int:
        """Number of values."""
        return len(self.labels)

    def encode(self, values: Iterable[str]) -> npt.NDArray[np.int64]:
        """Return the codes of `values`, shape (n,).

        Raises:
            InvalidInputError: a value is not a label (the value itself is not shown).
        """
        code = {label: position for position, label in enumerate(self.labels)}
        codes = [code.get(value, -1) for value in values]
        unseen = codes.count(-1)
        if unseen:
            hint = f"The labels are {', '.join(self.labels[:8])}{', ...' if self.k > 8 else ''}."
            _checks.reject("values", "labels of the domain", f"<{unseen} of {len(codes)} values unseen>", hint)
        return np.array(codes, dtype=np.int64)

    def decode(self, codes: npt.ArrayLike) -> list[str]:
        """Return the labels of `codes`, shape (n,)."""
        return [self.labels[code] for code in _checks.codes("codes", codes, k=self.k)]
