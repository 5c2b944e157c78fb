"""How much privacy a key has spent, run by run: written through to the disk before a run's first byte leaves."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, Self

from hushuffle import _checks
from hushuffle._checks import fail
from hushuffle.files.causes import cause
from hushuffle.files.secret_keys import damaged, key_folder, locked, read_memory, write_memory

_CONTENT: Final = "odometer"


@dataclass(frozen=True, kw_only=True)
class Spending:
    """What one run spends of everybody's privacy: (epsilon, delta), epsilon in nats.

    `run` names it. `use` is a digest of what it uses the key's coins for (what is sent, to whom, made how), made with
    the key so that it says nothing: the same run may be repeated for the same use only. Text, "" if nothing is to be
    compared.
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
    """The spendings of a key, in a private `folder`: they add up, and none is ever taken away.

    A key whose record is missing has spent nobody knows what, so it may spend nothing: `begin` is for keys that were
    never used. Any number of processes may share a record.

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
        """Return the odometer of a key, wherever the key lies; see `hushuffle.files.secret_keys`."""
        return cls(folder=key_folder(key))

    def begin(self) -> bool:
        """Begin a record of nothing spent, and say whether there was none. Only for keys that were never used."""
        with locked(self.folder):
            if self._read() is not None:
                return False
            self._write(())
            return True

    def spendings(self) -> tuple[Spending, ...]:
        """Return what was spent, in this order."""
        spendings = self._read()
        if spendings is None:
            fail(
                f"{self._path} is missing: nobody knows how much privacy this key has spent. Put it back, or take a "
                "new key. If the key was never used, begin its record."
            )
        return spendings

    def total(self) -> tuple[float, float]:
        """Return the sums of epsilon and delta, which hold for all runs together."""
        epsilon, delta = _sums(self.spendings())
        return float(epsilon), float(delta)

    def spend(self, spending: Spending, *, max_epsilon: float = math.inf, max_delta: float = 1.0) -> bool:
        """Note a run before anything of it leaves; return False if it was noted before, for the same use."""
        with locked(self.folder):
            before = self.spendings()
            for earlier in before:
                if earlier == spending:
                    return False
                if earlier.run == spending.run:
                    fail(
                        f"Run {spending.run} was noted before, with other figures or for other records: from the same "
                        "coins both together would reveal values. Nothing leaves."
                    )
            epsilon, delta = _sums((*before, spending))
            if epsilon > _decimal(max_epsilon) or delta > _decimal(max_delta):
                spent = _sums(before)
                fail(
                    f"Run {spending.run} would spend epsilon {spending.epsilon:g} and delta {spending.delta:g}. Spent "
                    f"are epsilon {float(spent[0]):g} and delta {float(spent[1]):g} of a budget of epsilon "
                    f"{max_epsilon:g} and delta {max_delta:g}. Nothing leaves."
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
        try:
            write_memory(self._path, _CONTENT, {"spendings": plain})
        except OSError as error:
            fail(f"{self._path} cannot be written: {cause(error)}. Nothing leaves.")


def _spending(*, run: Any, epsilon: Any, delta: Any, use: Any) -> Spending:
    if not all(isinstance(text, str) for text in (run, epsilon, delta, use)):
        raise TypeError
    return Spending(run=run, epsilon=float(epsilon), delta=float(delta), use=use)


def _sums(spendings: tuple[Spending, ...]) -> tuple[Decimal, Decimal]:
    """Return the sums of the figures as they are written: three times 0.1 is 0.3."""
    zero = Decimal(0)
    return (
        sum((_decimal(each.epsilon) for each in spendings), zero),
        sum((_decimal(each.delta) for each in spendings), zero),
    )


def _decimal(value: float) -> Decimal:
    return Decimal(repr(float(value)))
