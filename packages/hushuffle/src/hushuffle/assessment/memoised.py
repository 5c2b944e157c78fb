"""Compare memoized with fresh reports, and compute the probability that a changed value is detected."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from hushuffle.assessment.findings import Questions
from hushuffle.errors import InvalidInputError, NumericalError, UnsupportedProtocolError
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.model import Bound, Finding, Table
from hushuffle.model.bound import percent
from hushuffle.specification.exposure import Exposure

WATCHER: Final = "An adversary who compares the releases of two rounds"
_TOPIC: Final = "Memoized reports against fresh reports"


def kept_or_fresh(questions: Questions, protocol: Protocol, *, delta: float, exposure: Exposure) -> Iterator[Table]:
    """Yield epsilon over all rounds with memoized and with fresh reports, if reports are memoized."""

    def ask(case: Exposure) -> Bound | None:
        return questions.ask("memoised", _TOPIC, lambda: case.epsilon(protocol, delta=delta))

    if cases := exposure.compared_with_fresh(protocol.randomizer.inputs):
        yield _table(protocol, cases, delta=delta, ask=ask)


def compared_reports(protocol: Protocol, *, delta: float, exposure: Exposure) -> tuple[Table, ...]:
    """Epsilon over all rounds with memoized and with fresh reports; () for a single round."""
    if exposure.rounds == 1 or exposure.reports > 1:
        return ()

    def ask(case: Exposure) -> Bound | None:
        try:
            return case.epsilon(protocol, delta=delta)
        except (InvalidInputError, NumericalError, UnsupportedProtocolError):
            return None

    return (_table(protocol, exposure.memoized(protocol.randomizer.inputs), delta=delta, ask=ask),)


def _table(
    protocol: Protocol, memoized: Sequence[Exposure], *, delta: float, ask: Callable[[Exposure], Bound | None]
) -> Table:
    rounds = memoized[0].rounds
    cases = [(f"memoized, value {case.stays}", case) for case in memoized]
    cases.append(("fresh in every round, even if values change", Exposure(rounds=rounds)))
    return Table(
        key="memoised",
        title=f"{rounds:,} rounds: memoized reports and fresh reports",
        caption=(
            f"Epsilon of one person in all rounds together; central epsilon is at delta = {delta:g}. Each round is "
            f"shuffled by itself. Memoized reports hide only among the {protocol.n:,} people who take part in all "
            "rounds with the same value. Only fresh reports hide whether and when a value changes. A value that never "
            "changes is rare."
        ),
        columns=("reports", "central epsilon, all rounds", "local epsilon, all rounds"),
        rows=tuple((words, ask(case) or "not known", case.local(protocol)) for words, case in cases),
    )


def change(questions: Questions, protocol: Protocol, exposure: Exposure) -> tuple[Finding, ...]:
    """How likely an adversary detects that a value changed, from memoized reports; () for fresh reports."""
    bound = questions.ask("change-shows", WATCHER, lambda: exposure.change_shows(protocol))
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
                f"The adversary detects {often} of the time that your answer changed between the two rounds, if all "
                "other answers stay. If no answer changes, all rounds show the same reports."
            ),
            bound=bound,
            proof="probability that the old and the new report of one person differ, for the worst two values",
        ),
    )
