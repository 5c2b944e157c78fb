"""Compute the figures in other cases: fewer people, colluders, Sybil clients, several rounds, compromised shuffler."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from hushuffle._checks import unsupported
from hushuffle.assessment.trials import worst_error
from hushuffle.errors import InvalidInputError, NumericalError, UnsupportedProtocolError
from hushuffle.estimation.poisoning import PoisoningGain, poisoning_gain, usual_fakes
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.model import Bound, Scenario, number
from hushuffle.numerics.exact import sum_upwards
from hushuffle.specification.exposure import ONCE, Exposure

ROUNDS: Final = 5
_PLANNED: Final = "as-planned"
_COLLUDERS: Final = "colluders"
Answer = TypeVar("Answer")


@dataclass(frozen=True, kw_only=True)
class _Case:
    """A case: one in `part` people takes part, in `times` rounds; `colluders` is the number of reports by colluders."""

    key: str
    words: str
    times: int
    part: int = 1
    colluders: int = 0

    def answers(self, n: int) -> int:
        return n // self.part

    def hiding(self, protocol: Protocol) -> Protocol:
        """The protocol without the colluders' reports; in the worst case, all colluders would be honest."""
        honest = _of(protocol, self.answers(protocol.n)).secret
        if honest.n <= self.colluders:
            unsupported("No honest people remain: only the noise on the device protects a report.")
        return _of(honest, honest.n - self.colluders)


def _of(protocol: Protocol, n: int) -> Protocol:
    """Return the protocol with n people. Raises `UnsupportedProtocolError` if its shuffler is for another number."""
    try:
        return replace(protocol, n=n)
    except InvalidInputError:
        unsupported(f"The public order is of {protocol.n:,} people. Assess that of {n:,}.")


def scenarios(
    protocols: Sequence[Protocol],
    *,
    delta: float,
    colluders: int | None,
    exposure: Exposure = ONCE,
    planned: Bound | None = None,
) -> tuple[Scenario, ...]:
    """Return the figures of the planned case and of other cases; a remark explains a missing figure.

    Central epsilon is computed at `delta`, the standard error of a share at the worst true share. Colluders reveal
    their own reports to the analyst, so a person hides among the remaining people and the dummies. If only an `honest`
    share sends additional messages, all colluders are counted as honest. The estimates still include the colluders'
    answers. The case of Sybil clients assumes as many of them: they know their own reports and have a maximal poisoning
    gain (of several columns, the largest). For several `protocols`, one per column, central epsilons are composed,
    local epsilons are added up, and the standard error is the largest.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.UniformShuffle(), n=2000)
    >>> for row in scenarios([survey], delta=1e-6, colluders=500):
    ...     print(f"{row.case}: {row.central}")
    As planned: 0.08616 to 0.08620 nats (certified bracket)
    A quarter of the people take part: 500: 0.1871 nats (certified bracket)
    A tenth of the people take part: 200: 0.3183 nats (certified bracket)
    500 people collude with the analyst: 0.1011 nats (certified bracket)
    500 Sybil clients send arbitrary reports: a share moves by up to 0.40: 0.1011 nats (certified bracket)
    The same people are asked 5 times: 0.2005 to 0.2009 nats (certified bracket)
    The shuffler is compromised: 1.000 nats (exact)
    """
    rows: list[Scenario] = []
    for case in _cases([protocol.n for protocol in protocols], colluders, exposure):
        rows.append(_scenario(protocols, case, delta, exposure, planned if case.key == _PLANNED else None))
        if case.key == _COLLUDERS:
            rows.append(_fake(protocols, case.colluders // exposure.reports, exposure, rows[0], rows[-1]))
    return (*rows, _broken(protocols, exposure))


def _cases(sizes: Sequence[int], colluders: int | None, exposure: Exposure) -> Iterator[_Case]:
    planned, n = exposure.rounds, max(sizes)
    yield _Case(key=_PLANNED, words="As planned", times=planned)
    what = "people" if exposure.reports == 1 else "reports"
    for part, name in ((4, "A quarter"), (10, "A tenth")):
        if min(sizes) // part:
            words = f"{name} of the {what} {exposure.taking_part}: {n // part:,}"
            yield _Case(key=f"one-in-{part}", words=words, part=part, times=planned)
    count = colluders or usual_fakes(n)
    words = f"{count:,} {'person colludes' if count == 1 else 'people collude'} with the analyst"
    yield _Case(key=_COLLUDERS, words=words, colluders=count * exposure.reports, times=planned)
    times = ROUNDS * planned
    yield _Case(key="rounds", words=f"The same people are asked {times:,} times", times=times)


def _scenario(
    protocols: Sequence[Protocol], case: _Case, delta: float, exposure: Exposure, planned: Bound | None
) -> Scenario:
    def central() -> Bound:
        if planned is not None:
            return planned
        return replace(exposure, rounds=case.times).together(list(map(case.hiding, protocols)), delta=delta)

    figure, refused = _asked(central)
    error, no_error = _asked(
        lambda: max(worst_error(_of(protocol, case.answers(protocol.n))) for protocol in protocols)
    )
    return Scenario(key=case.key, case=case.words, central=figure, standard_error=error, remark=refused or no_error)


def _fake(
    protocols: Sequence[Protocol], fakes: int, exposure: Exposure, planned: Scenario, colluding: Scenario
) -> Scenario:
    """The scenario with Sybil clients, who collude and also bias the estimates."""

    def gain(protocol: Protocol) -> PoisoningGain:
        each = min(exposure.reports, protocol.n)
        return poisoning_gain(protocol, fakes=min(fakes, protocol.n // each), reports_per_person=each)

    def furthest() -> float:
        gains = map(gain, protocols)
        return max(max(one.raised.upper, one.lowered.upper) for one in gains)

    moved, refused = _asked(furthest)
    how_far = "" if moved is None else f": a share moves by up to {number(moved, up=True, digits=2)}"
    return Scenario(
        key="fake-users",
        case=f"{fakes:,} Sybil client{' sends' if fakes == 1 else 's send'} arbitrary reports{how_far}",
        central=colluding.central,
        standard_error=planned.standard_error,
        remark=colluding.remark or refused,
    )


def _broken(protocols: Sequence[Protocol], exposure: Exposure) -> Scenario:
    """The guarantee that remains if a compromised shuffler reveals senders."""
    error, refused = _asked(lambda: max(worst_error(protocol) for protocol in protocols))
    local = sum_upwards([exposure.local(protocol).upper for protocol in protocols])
    sums = protocols[0].shuffler.reveals is Reveals.SUMS
    return Scenario(
        key="broken-shuffler",
        case="All servers collude" if sums else "The shuffler is compromised",
        central=Bound.exact(local, unit="nats"),
        standard_error=error,
        remark=refused,
    )


def _asked(answer: Callable[[], Answer]) -> tuple[Answer | None, str]:
    """The result and "", or None and the reason why there is no result."""
    try:
        return answer(), ""
    except (InvalidInputError, NumericalError, UnsupportedProtocolError) as refusal:
        return None, str(refusal)
