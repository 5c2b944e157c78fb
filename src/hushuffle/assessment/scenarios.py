"""What if: fewer people, colluders, fake users, several rounds, a broken shuffler."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from hushuffle.assessment.exposure import ONCE, Exposure
from hushuffle.assessment.trials import worst_error
from hushuffle.errors import InvalidInputError, NumericalError, UnsupportedProtocolError
from hushuffle.estimation.poisoning import PoisoningGain, poisoning_gain, usual_fakes
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.model import Bound, Scenario, number
from hushuffle.numerics.exact import sum_upwards

ROUNDS: Final = 5
_PLANNED: Final = "as-planned"
_COLLUDERS: Final = "colluders"
Answer = TypeVar("Answer")


@dataclass(frozen=True, kw_only=True)
class _Case:
    """One person in so many takes part; of those so many tell their reports; so many rounds."""

    key: str
    words: str
    times: int
    part: int = 1
    told: int = 0

    def answers(self, n: int) -> int:
        """How many answers there are of the n planned ones."""
        return n // self.part

    def hiding(self, protocol: Protocol) -> Protocol:
        """Return what an honest person hides in: those who tell are all honest people, at worst.

        Raises:
            UnsupportedProtocolError: nobody is left.
        """
        honest = replace(protocol, n=self.answers(protocol.n)).secret
        if honest.n <= self.told:
            message = "Nobody is left to hide among: only the noise on the device protects."
            raise UnsupportedProtocolError(message)
        return replace(honest, n=honest.n - self.told)


def scenarios(
    protocols: Sequence[Protocol],
    *,
    delta: float,
    colluders: int | None,
    exposure: Exposure = ONCE,
    planned: Bound | None = None,
) -> tuple[Scenario, ...]:
    """Return the figures as planned, and where something is otherwise; a figure that cannot be given has a remark.

    Central epsilon is at `delta`; the standard error is that of a share, at the worst true share. Colluders tell their
    own reports, so that a person hides among the others, and the dummies; where `honest` people alone hide somebody,
    all who tell are of these. Their answers still count. As many fake users know their own reports too, and move a
    share by so much at most (of several columns: the largest). Figures are for all that one person gives: of several
    `protocols`, one for each column, central epsilons are composed and local ones added up, and the standard error is
    the largest. `planned` is the central epsilon as planned, where it is known.

    >>> import hushuffle as hs
    >>> survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.UniformShuffle(), n=2000)
    >>> for row in scenarios([survey], delta=1e-6, colluders=500):
    ...     print(f"{row.case}: {row.central}")
    As planned: 0.08616 to 0.08620 nats (certified bracket)
    A quarter of the people take part: 500: 0.1871 nats (certified bracket)
    A tenth of the people take part: 200: 0.3183 nats (certified bracket)
    500 people tell the reader their reports: 0.1011 nats (certified bracket)
    500 fake users send what they like: a share moves by up to 0.40: 0.1011 nats (certified bracket)
    The same people are asked 5 times: 0.2005 to 0.2009 nats (certified bracket)
    The shuffler is broken or dishonest: 1.000 nats (exact)
    """
    cases = _cases([protocol.n for protocol in protocols], colluders, exposure)
    rows: list[Scenario] = []
    for case in cases:
        rows.append(_scenario(protocols, case, delta, exposure, planned if case.key == _PLANNED else None))
        if case.key == _COLLUDERS:
            rows.append(_fake(protocols, case.told // exposure.reports, exposure, rows[0], rows[-1]))
    return (*rows, _broken(protocols, exposure))


def _cases(sizes: Sequence[int], colluders: int | None, exposure: Exposure) -> Iterator[_Case]:
    planned, n = exposure.rounds, max(sizes)
    yield _Case(key=_PLANNED, words="As planned", times=planned)
    what = "people" if exposure.reports == 1 else "reports"
    for part, name in ((4, "A quarter"), (10, "A tenth")):
        if min(sizes) // part:
            does = "take part" if not exposure.memoised else "take part in all rounds, and their values stay"
            words = f"{name} of the {what} {does}: {n // part:,}"
            yield _Case(key=f"one-in-{part}", words=words, part=part, times=planned)
    told = colluders or usual_fakes(n)
    words = f"{told:,} {'person tells' if told == 1 else 'people tell'} the reader their reports"
    yield _Case(key=_COLLUDERS, words=words, told=told * exposure.reports, times=planned)
    times = ROUNDS * planned
    yield _Case(key="rounds", words=f"The same people are asked {times:,} times", times=times)


def _scenario(
    protocols: Sequence[Protocol], case: _Case, delta: float, exposure: Exposure, known: Bound | None
) -> Scenario:
    def central() -> Bound:
        if known is not None:
            return known
        return replace(exposure, rounds=case.times).together(list(map(case.hiding, protocols)), delta=delta)

    figure, refused = _asked(central)
    error, no_error = _asked(
        lambda: max(worst_error(replace(protocol, n=case.answers(protocol.n))) for protocol in protocols)
    )
    return Scenario(key=case.key, case=case.words, central=figure, standard_error=error, remark=refused or no_error)


def _fake(
    protocols: Sequence[Protocol], fakes: int, exposure: Exposure, planned: Scenario, colluding: Scenario
) -> Scenario:
    """Return what fake users can do: they tell what they know, as colluders do, and they move estimates besides."""

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
        case=f"{fakes:,} fake user{' sends' if fakes == 1 else 's send'} what they like{how_far}",
        central=colluding.central,
        standard_error=planned.standard_error,
        remark=colluding.remark or refused,
    )


def _broken(protocols: Sequence[Protocol], exposure: Exposure) -> Scenario:
    """Return what is left where the shuffler tells who sent what."""
    error, refused = _asked(lambda: max(worst_error(protocol) for protocol in protocols))
    local = sum_upwards([exposure.local(protocol).upper for protocol in protocols])
    sums = protocols[0].shuffler.reveals is Reveals.SUMS
    return Scenario(
        key="broken-shuffler",
        case="All servers work together" if sums else "The shuffler is broken or dishonest",
        central=Bound.exact(local, unit="nats"),
        standard_error=error,
        remark=refused,
    )


def _asked(answer: Callable[[], Answer]) -> tuple[Answer | None, str]:
    """Return what `answer` returns, or why there is none."""
    try:
        return answer(), ""
    except (InvalidInputError, NumericalError, UnsupportedProtocolError) as refusal:
        return None, str(refusal)
