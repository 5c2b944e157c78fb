"""Present the results of linkage attacks as sentences, a table, warnings and charts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from hushuffle.attacks import linkage
from hushuffle.attacks.detection import Detection
from hushuffle.mechanisms.randomizers import Mechanism
from hushuffle.model import Bound, Cell, Chart, Finding, Series, Table, Warned, number

Events = int | Literal["all"]

TOP: Final = (5, 10)
FEW: Final = 100
"""With fewer people than this, the divergence of scores is not estimated, and the report warns."""

_ALARM: Final = 1e-6


@dataclass(frozen=True, kw_only=True)
class Try:
    """The settings of one attack; `epsilon` is math.inf for unchanged reports, `known` is None without a limit."""

    mechanism: str
    randomizer: Mechanism
    known: int | None
    events: Events

    @property
    def epsilon(self) -> float:
        chosen = self.randomizer.chosen_epsilon
        return self.randomizer.local_epsilon if chosen is None else chosen


@dataclass(frozen=True, kw_only=True, eq=False)
class Ranked:
    """The ranks of the right user in one attack, and `least`, a certified lower bound on the error of any attack."""

    places: npt.NDArray[np.int64]
    least: Bound

    @property
    def wrong(self) -> float:
        """The share of reports whose best score belonged to another person."""
        return float(np.mean(self.places > 1))

    @property
    def error(self) -> Bound:
        """Clopper-Pearson interval for `wrong`, over the mechanism's randomness and random tie-breaking."""
        return linkage.miss_rate(self.places)

    @property
    def floor(self) -> float:
        """The certified error."""
        return self.least.lower

    @property
    def impossible(self) -> bool:
        """Whether the error was significantly below the certified one (false alarm probability 1e-6)."""
        return linkage.miss_rate(self.places, confidence=1 - _ALARM).upper < self.floor


@dataclass(frozen=True, kw_only=True, eq=False)
class Outcome(Ranked):
    """The result of one attack over all repetitions.

    `entropy` is the PSE of the last scores in bits, and `published` the bound of Murakami, Takahashi 2021. `again` is
    the share of reported events that the attacker already knew.
    """

    tried: Try
    entropy: Bound | None
    detection: Detection
    published: Bound
    again: float


def headline(found: Sequence[Outcome]) -> list[Outcome]:
    """Return the outcomes for the first settings of `known` and `events`, one for each mechanism and epsilon."""
    first = found[0].tried
    return [one for one in found if (one.tried.known, one.tried.events) == (first.known, first.events)]


def noise_of(tried: Try) -> str:
    epsilon = tried.epsilon
    return "without noise" if math.isinf(epsilon) else f"with {tried.mechanism} at epsilon {epsilon:g}"


def _sentence(outcome: Outcome, n: int) -> str:
    noise = noise_of(outcome.tried)
    promise = f"; no attack on one person's reports has a success rate above {number(1 - outcome.least.lower, up=True)}"
    return (
        f"{noise[0].upper()}{noise[1:]} the attacker identifies the sender among {n:,} people "
        f"{number(1 - outcome.wrong)} of the time ({number(1 - outcome.error.upper, up=False)} to "
        f"{number(1 - outcome.error.lower, up=True)}){promise if outcome.least.lower > 0 else ''}."
    )


def answers(found: Sequence[Outcome], n: int) -> tuple[str, ...]:
    ends = dict.fromkeys((headline(found)[0], headline(found)[-1]))
    broken = sum(one.impossible for one in found)
    verdict = (
        f"{broken} of {len(found)} attacks succeeded more often than the certified bound allows: see the warning."
        if broken
        else f"None of the {len(found)} attacks succeeded significantly more often than the certified bound allows."
    )
    return (*(_sentence(one, n) for one in ends), verdict)


def findings(found: Sequence[Outcome], n: int) -> Iterator[Finding]:
    for outcome in found:
        yield Finding(
            question="identification-error",
            adversary="an attacker who knows past events",
            sentence=_sentence(outcome, n),
            bound=outcome.error,
            proof="measured: best-score rule, interval of Clopper and Pearson",
        )


def table(found: Sequence[Outcome], n: int) -> Table:
    columns: list[tuple[str, Callable[[Outcome], Cell]]] = [
        ("mechanism", lambda one: one.tried.mechanism),
        ("epsilon", lambda one: one.tried.epsilon),
        ("events known", lambda one: "all" if one.tried.known is None else one.tried.known),
        ("events reported", lambda one: one.tried.events),
        ("identification error", lambda one: one.wrong),
        ("interval", lambda one: one.error),
        ("certified least error", lambda one: one.least),
        ("Fano's bound, published", lambda one: one.published),
        *((f"right one in top {top}", lambda one, top=top: linkage.hit_rate(one.places, top=top)) for top in TOP),
        ("equal error rate", lambda one: one.detection.equal_error),
        ("PSE", lambda one: "too few people" if one.entropy is None else one.entropy),
    ]
    sweeps = {"events known", "events reported"}
    constant = [name for name, cell in columns if name in sweeps and len({cell(one) for one in found}) == 1]
    shown = [(name, cell) for name, cell in columns if name not in constant]
    return Table(
        key="identification",
        title="How often the attacker is wrong",
        caption=(
            "Identification error: the share of people whose reports score highest for another person; "
            f"{number(1 - 1 / n)} for a blind guess. Certified: lower bound for any attack on one person's reports."
        ),
        columns=tuple(name for name, _ in shown),
        rows=tuple(tuple(cell(one) for _, cell in shown) for one in found),
    )


def concerns(found: Sequence[Outcome], n: int, *, halved: bool) -> Iterator[Warned]:
    if any(one.impossible for one in found):
        yield Warned(
            key="bound-broken",
            sentence="An attack succeeded significantly more often than the certified bound allows.",
            advice="The bound, the sampler or the attack has a bug. Please report it with study.json.",
        )
    if n < FEW:
        yield Warned(
            key="few-people",
            sentence=f"The attack covers only {n} people. Identification is harder among more people.",
            advice="Attack data of more people, or rely on the intervals.",
        )
    if halved and found[0].again < 0.1:
        yield Warned(
            key="nothing-repeats",
            sentence=f"Only {number(100 * found[0].again)} % of the reported events are past events of the person.",
            advice="If events never repeat (ratings), use split none and few known events, or maximum knowledge.",
        )


_POINTS: Final = 60


def charts(found: Sequence[Outcome]) -> tuple[Chart, ...]:
    """Return charts of the error against each varied quantity, and of false accepts against false rejects."""
    drawn = [
        _chart(
            found,
            key="error-by-epsilon",
            title="Noise against identification",
            caption="Measured identification error with its interval, and certified lower bound, against epsilon.",
            x_label="epsilon of one report",
            x=lambda tried: tried.epsilon,
            name=lambda tried: f"{_mechanism(tried)}, {_known(tried)}, {tried.events} reported",
            certified=True,
        ),
        _chart(
            found,
            key="error-by-known",
            title="What the attacker knows",
            caption="Identification error against the number of past events that the attacker knows of each person.",
            x_label="events known of each person",
            x=lambda tried: math.inf if tried.known is None else tried.known,
            name=lambda tried: f"{_noise(tried)}, {tried.events} reported",
        ),
        _chart(
            found,
            key="error-by-events",
            title="What people report",
            caption="Identification error against the number of events that each person reports.",
            x_label="events reported by each person",
            x=lambda tried: math.inf if tried.events == "all" else tried.events,
            name=lambda tried: f"{_noise(tried)}, {_known(tried)}",
        ),
    ]
    return (*(chart for chart in drawn if chart is not None), _detection(headline(found)))


def _detection(outcomes: Sequence[Outcome]) -> Chart:
    series = []
    for outcome in outcomes:
        accept, reject = outcome.detection.false_accept, outcome.detection.false_reject
        wanted = np.geomspace(accept[accept > 0].min(), 1.0, _POINTS)
        shown = np.unique(np.searchsorted(accept, wanted, side="right") - 1)
        places, missed = tuple(accept[shown].tolist()), tuple(reject[shown].tolist())
        series.append(Series.through(_noise(outcome.tried), places, missed))
    return Chart(
        key="detection",
        title="Is this report of this person?",
        caption="False rejections against false acceptances of matched pairs. A lower curve is a better attack.",
        x_label="false accept rate",
        y_label="false reject rate",
        series=tuple(series),
        x_log=True,
    )


def _chart(
    outcomes: Sequence[Outcome],
    *,
    key: str,
    title: str,
    caption: str,
    x_label: str,
    x: Callable[[Try], float],
    name: Callable[[Try], str],
    certified: bool = False,
) -> Chart | None:
    """Return a line for each `name`; None unless two finite values of `x` were tried."""
    shown = sorted((one for one in outcomes if math.isfinite(x(one.tried))), key=lambda one: x(one.tried))
    if len({x(one.tried) for one in shown}) < 2:
        return None
    names = list(dict.fromkeys(name(one.tried) for one in shown))
    series = []
    for label in names:
        mine = [one for one in shown if name(one.tried) == label]
        places = tuple(x(one.tried) for one in mine)
        series.append(Series.through(f"measured: {label}", places, [one.error for one in mine]))
        if certified:
            least = [Bound.exact(one.least.lower, unit=one.least.unit) for one in mine]
            series.append(Series.through(f"certified: {label}", places, least))
    y_label, lines = "identification error", tuple(series)
    return Chart(key=key, title=title, caption=caption, x_label=x_label, y_label=y_label, series=lines)


def _mechanism(tried: Try) -> str:
    return tried.mechanism.partition(" (")[0]


def _noise(tried: Try) -> str:
    epsilon = tried.epsilon
    return tried.mechanism if math.isinf(epsilon) else f"{_mechanism(tried)} at {epsilon:g}"


def _known(tried: Try) -> str:
    return "all known" if tried.known is None else f"{tried.known} known"
