"""Reports that are kept and sent again: what they save over fresh ones, and how often a change of a value shows."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hushuffle.assessment.exposure import Exposure
from hushuffle.assessment.findings import Questions
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.model import Bound, Finding, Table
from hushuffle.model.bound import percent
from hushuffle.questions import dp

WATCHER: Final = "Somebody who compares the releases of two rounds"
_TOPIC: Final = "Kept reports against fresh ones"


def kept_or_fresh(questions: Questions, protocol: Protocol, *, delta: float, exposure: Exposure) -> tuple[Table, ...]:
    """Return the table of what all rounds tell with reports that are kept and with fresh ones; none of one round."""
    if not exposure.memoised:
        return ()
    k = protocol.randomizer.inputs
    asked = sorted({0, 1, exposure.changes})
    kept = [replace(exposure, changes=changes, values=min(changes + 1, k)) for changes in asked]
    fresh = Exposure(rounds=exposure.rounds)
    cases = [(f"kept, value {one.stays}", one) for one in kept]
    cases.append(("drawn anew in every round, whatever values do", fresh))

    def figure(case: Exposure) -> Bound | str:
        got = questions.ask("memoised", _TOPIC, lambda: case.epsilon(protocol, delta=delta))
        return "not known" if got is None else got

    return (
        Table(
            key="memoised",
            title=f"Asked {exposure.rounds:,} times: reports that are kept, and fresh ones",
            caption=(
                f"Epsilon of all rounds together for one person, central at delta = {delta:g}. Each round is shuffled "
                f"by itself. The crowd of kept reports are people who take part in all rounds with the same value: "
                f"here {protocol.n:,}. That a value changes, and when, is hidden by fresh reports only."
            ),
            columns=("reports", "central epsilon, all rounds", "local epsilon, all rounds"),
            rows=tuple((words, figure(one), one.local(protocol)) for words, one in cases),
        ),
    )


def change(questions: Questions, protocol: Protocol, exposure: Exposure) -> tuple[Finding, ...]:
    """Return how often a change of one person's value shows; nothing where no report is kept."""
    if not exposure.memoised:
        return ()
    bound = questions.ask("change-shows", WATCHER, lambda: dp.change_shows(protocol))
    if bound is None:
        return ()
    often = percent(bound.upper)
    if bound.kind != "exact":
        often = f"between {percent(bound.lower, up=False)} and {percent(bound.upper, up=True)}"
    return (
        Finding(
            question="change-shows",
            adversary=WATCHER,
            sentence=(
                f"If your answer changes between them and everybody else's stays, sees that it does {often} of the "
                "time: the others' reports stay too. If all answers stay, all rounds show the same reports."
            ),
            bound=bound,
            proof="chance that the old and the new report of one person differ, for the two values that differ most",
        ),
    )
