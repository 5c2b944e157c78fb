"""The privacy loss of a key, run by run; each loss is on the disk before the first byte of its run is sent."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Self

from hushuffle import _checks
from hushuffle._checks import fail
from hushuffle.files.causes import failing
from hushuffle.files.secret_keys import damaged, key_folder, locked, read_memory, write_memory

_CONTENT: Final = "odometer"


@dataclass(frozen=True, kw_only=True)
class Spending:
    """The privacy loss (epsilon, delta) of one run for each person, with epsilon in nats.

    `use`: a keyed digest of content, recipients and mechanism; a run may be repeated only for the same use, and an
    empty `use` allows no comparison.
    """

    run: str
    epsilon: float
    delta: float = 0.0
    use: str = ""

    def __post_init__(self) -> None:
        if self.epsilon != math.inf:
            _checks.non_negative("epsilon", self.epsilon)
        _checks.probability("delta", self.delta)


@dataclass(frozen=True, kw_only=True)
class Odometer:
    """The recorded privacy losses of a key, in a private `folder`: losses add up, and no loss is ever removed.

    A key without a record may not be used, since its privacy loss is unknown. Several processes may share a record.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     odometer = Odometer(folder=Path(folder))
    ...     odometer.begin()
    ...     odometer.spend(Spending(run="monday", epsilon=0.5), max_epsilon=1.0)
    ...     odometer.spend(Spending(run="monday", epsilon=0.5), max_epsilon=1.0)  # the same run: spent before
    ...     odometer.total()
    True
    True
    False
    (0.5, 0.0)
    """

    folder: Path

    @classmethod
    def of(cls, key: bytes) -> Self:
        return cls(folder=key_folder(key))

    def begin(self) -> bool:
        """Begin an empty record, for a key that was never used; return False if the key already has a record."""
        with locked(self.folder):
            if self._read() is not None:
                return False
            self._write(())
            return True

    def spendings(self) -> tuple[Spending, ...]:
        spendings = self._read()
        if spendings is None:
            fail(
                f"{self._path} is missing, so the privacy loss of this key is unknown. Restore it, or create a new "
                "key. If the key was never used, create its record."
            )
        return spendings

    def total(self) -> tuple[float, float]:
        """Return the sums of epsilon and of delta, which bound the privacy loss of all runs together."""
        epsilon, delta = _sums(self.spendings())
        return float(epsilon), float(delta)

    def spend(self, spending: Spending, *, max_epsilon: float = math.inf, max_delta: float = 1.0) -> bool:
        """Record a run before any of its messages is sent; return False if the same run is already on record."""
        with locked(self.folder):
            before = self.spendings()
            for earlier in before:
                if earlier == spending:
                    return False
                if earlier.run == spending.run:
                    fail(
                        f"Run {spending.run} is already on record with other figures or other records. Reusing its "
                        "randomness would reveal values, so nothing was sent. Give the run a new name or a new key."
                    )
            epsilon, delta = _sums((*before, spending))
            if epsilon > _decimal(max_epsilon) or delta > _decimal(max_delta):
                spent = _sums(before)
                fail(
                    f"Run {spending.run} would spend epsilon {spending.epsilon:g} and delta {spending.delta:g}. "
                    f"Epsilon {float(spent[0]):g} and delta {float(spent[1]):g} are spent, of a budget of epsilon "
                    f"{max_epsilon:g} and delta {max_delta:g}. Nothing was sent."
                )
            self._write((*before, spending))
            return True

    @property
    def _path(self) -> Path:
        return self.folder / "odometer.json"

    def _read(self) -> tuple[Spending, ...] | None:
        document = read_memory(self._path, _CONTENT)
        if document is None:
            return None
        try:
            return tuple(_spending(**entry) for entry in document["spendings"])
        except (KeyError, TypeError, ValueError):
            damaged(self._path)

    def _write(self, spendings: tuple[Spending, ...]) -> None:
        plain = [{**asdict(each), "epsilon": repr(each.epsilon), "delta": repr(each.delta)} for each in spendings]
        with failing(f"{self._path} cannot be written", then=" Nothing was sent."):
            write_memory(self._path, _CONTENT, {"spendings": plain})


def _spending(*, run: Any, epsilon: Any, delta: Any, use: Any) -> Spending:
    if not all(isinstance(text, str) for text in (run, epsilon, delta, use)):
        raise TypeError
    return Spending(run=run, epsilon=float(epsilon), delta=float(delta), use=use)


def _sums(spendings: tuple[Spending, ...]) -> tuple[Decimal, Decimal]:
    """Return the exact sums of epsilon and of delta as decimal numbers, in which 0.1 + 0.1 + 0.1 is 0.3."""
    zero = Decimal(0)
    return (
        sum((_decimal(each.epsilon) for each in spendings), zero),
        sum((_decimal(each.delta) for each in spendings), zero),
    )


def _decimal(value: float) -> Decimal:
    return Decimal(repr(float(value)))
