"""What a collection needs, draws and states, by whether reports are fresh or memoized; the guarantee of a key's rounds.

No report is stored, since a memoized report is a function of the key, the person, the value, the column, the categories
and the randomizer. If none of these changes, the report is the same in every round.

Source: docs/theory/composition.md, Theorem 11.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final

from hushuffle._checks import fail
from hushuffle.collection.engines.kernel import Kernel, MemoizedKernel
from hushuffle.files.secret_keys import derived
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.model import Bound
from hushuffle.questions import dp
from hushuffle.specification import Specification
from hushuffle.specification._base import unfit
from hushuffle.specification.exposure import Exposure
from hushuffle.specification.population import ONE_ROW

_KEPT: Final = (
    "replace one person's values in all rounds; in which rounds they change, and in which they return to an earlier "
    "value, stays as it is"
)


class FreshReports:
    """Reports with fresh randomness in every round."""

    ids: str | None = None
    """The column that identifies people, if the specification determines it."""

    assumed: ClassVar[dict[str, Any]] = {"assumed": ONE_ROW}
    """What the guarantee assumes if no column identifies people."""

    @staticmethod
    def of(specification: Specification) -> FreshReports:
        return MemoizedReports(specification) if specification.memoised else FreshReports()

    def check(self, ids: str | None, budget: Path | None) -> None:
        """Raise an error if the column of ids (None: no key) or a budget do not fit the reports."""

    def check_batches(self) -> None:
        """Raise an error if reports cannot be collected in batches."""

    def check_added(self) -> None:
        """Raise an error if the reports of several releases do not add up."""

    def person(self, column: str | None) -> str | None:
        """Return the column by whose people some of several records are chosen; None: all records are used."""
        return column

    def persons(self, reports: int) -> int | None:
        """Return the number of people, if ids identify them."""

    def kernel(self, kernel: Kernel, mechanism: str) -> Kernel:
        """Return the kernel that draws the reports; those of memoized reports depend on this `mechanism`."""
        return kernel

    def rounds(self, people: int) -> dict[str, Any]:
        """Return facts for the manifest about the guarantee of all rounds."""
        return {}


FRESH: Final = FreshReports()


class MemoizedReports(FreshReports):
    """Reports that repeat in every round."""

    assumed: ClassVar[dict[str, Any]] = {}

    def __init__(self, specification: Specification) -> None:
        self._changes, self.ids = specification.changes or 0, specification.population.whose

    def check(self, ids: str | None, budget: Path | None) -> None:
        if self.ids is None:
            hint = 'Set it to the column that identifies the person of each report, for example person = "user".'
            unfit("population.person", "must be given to collect memoized reports", "nothing", hint)
        if ids is None:
            fail(
                "Memoized reports are not stored: a key reproduces their randomness. Pass `--key-file`, and in the "
                "first round `--new-key`."
            )
        if ids != self.ids:
            fail(
                f"With memoized reports, --id is the column of population.person, {self.ids!r}. Pass this, or remove "
                "--id."
            )
        if budget is not None:
            fail(
                "A budget covers fresh reports only: remove `--budget`. The ledger of the key counts rounds of "
                "memoized reports, and targets.epsilon limits them."
            )

    def check_batches(self) -> None:
        fail("Memoized reports are collected in whole rounds, not in batches: pass `--round`, not `--batches`.")

    def check_added(self) -> None:
        fail(
            "Memoized reports repeat the same noise in every round, so adding up rounds does not reduce it. Estimate "
            "each round separately."
        )

    def person(self, column: str | None) -> None:
        return None  # each person has one record

    def persons(self, reports: int) -> int:
        return reports

    def kernel(self, kernel: Kernel, mechanism: str) -> Kernel:
        """Return a kernel whose randomness is that of the column, categories and randomizer, in all rounds."""
        assert kernel.key is not None  # `check`
        key = derived(kernel.key, f"memoised 1, {hashlib.sha256(mechanism.encode()).hexdigest()}")
        return MemoizedKernel(randomizer=kernel.randomizer, grid=kernel.grid, key=key, round=kernel.round)

    def rounds(self, people: int) -> dict[str, Any]:
        crowd = f"all {people:,} people take part in every round and keep their values"
        return {"memoised": True, "changes": self._changes, "relation": _KEPT, "assumed": crowd}


@dataclass(frozen=True, kw_only=True)
class KeyRounds:
    """The use of a key: its `collections` (each column in each round counts), and their central epsilon at `delta`.

    `unknown` batches are not in epsilon, since an earlier version collected them and did not record the mechanism.
    With memoized reports, `kept` people have sent the same report in all rounds, and `changed` people of this round
    gave another answer in another round.
    """

    collections: int
    epsilon: Bound
    delta: float
    unknown: int = 0
    kept: int | None = None
    changed: int = 0

    def facts(self) -> dict[str, Any]:
        return {
            "collections": self.collections,
            "epsilon": self.epsilon.as_dict(),
            "delta": self.delta,
            "unknown": self.unknown,
        }


def kept_rounds(
    specification: Specification, protocol: Protocol, counts: tuple[int, int, int], rounds: int
) -> KeyRounds:
    """Return the joint guarantee of all rounds; only people with the same report in all rounds count as the crowd."""
    unchanged, changed, most = counts
    announced, targets = specification.rounds or 1, specification.targets
    if rounds > announced:
        fail(
            f"This key has {announced:,} rounds, as many as the specification announces: nothing was released. Raise "
            "rounds in the specification, or end the collection."
        )
    if rounds > 1 and unchanged == 0:
        fail(
            f"No person has sent the same report in all {rounds:,} rounds so far, so nothing was released. If an id "
            "changes, its person sends a second report: write ids as in earlier rounds."
        )
    _refuse_changes(specification, changed, most)
    crowd = replace(protocol, n=max(unchanged, 1))
    values = Exposure.of(specification, k=crowd.randomizer.inputs).values
    figure = dp.waves(crowd, waves=rounds, delta=targets.delta, changes=values - 1)
    if targets.epsilon is not None and figure.upper > targets.epsilon:
        fail(
            f"Only {unchanged:,} people have sent the same report in all {rounds:,} rounds so far: their central "
            f"epsilon is up to {figure.upper:.4g} at delta = {targets.delta:g}, above targets.epsilon = "
            f"{targets.epsilon:g}. Nothing was released."
        )
    epsilon = Bound(lower=0.0, upper=figure.upper, kind="upper", unit="nats")
    return KeyRounds(collections=rounds, epsilon=epsilon, delta=targets.delta, kept=unchanged, changed=changed)


def _refuse_changes(specification: Specification, changed: int, most: int) -> None:
    """Raise an error if a person has sent more different reports than the guarantee covers."""
    announced = specification.changes or 0
    if most - 1 > announced:
        who = "1 person" if changed == 1 else f"{changed:,} people"
        fail(
            f"{who} gave another answer in an earlier round, up to {most:,} different answers each. With changes = "
            f"{announced} the specification announces {announced + 1:,} at most: nothing was released. Raise changes "
            "(hushuffle calibrate computes the noise for it), or put the earlier answer into this round's file. Do not "
            "leave these people out: whether an answer is missing would then depend on the answer."
        )
