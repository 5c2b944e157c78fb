"""Search, for one mechanism and one shuffler, for the local epsilon that meets the targets of a request."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, Final

import tomli_w

from hushuffle.assessment.calibrate import held, learned, point_at
from hushuffle.assessment.exposure import Exposure
from hushuffle.assessment.targets import GUESSES, Point, Proposal
from hushuffle.assessment.trials import error_with, least_accurate
from hushuffle.errors import InvalidInputError, SpecificationError
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.settings import Setting
from hushuffle.model import Bound, Target, number
from hushuffle.model.solver import Parameter, Requirement, log_excess, solve
from hushuffle.questions.dp.calibration import LARGEST_LOCAL, excess
from hushuffle.specification import Specification, parse
from hushuffle.specification.kinds import RANDOMIZERS

_FINE: Final = 1e-3
"""Relative resolution of a local epsilon."""
_DIGITS: Final = 4
_HAIR: Final = 1e-3
_SMALL: Final = 1e-3
"""The smallest local epsilon that is tried if there is no accuracy target."""

_REVEALING: Final = f"No local epsilon of {_SMALL:g} or more meets the privacy targets."
APART: Final = "This shuffler does not support the reports of this mechanism."

_BEHIND: Final = {
    "none": "no shuffler",
    "uniform": "a uniform shuffle",
    "secure-aggregation": "secure aggregation",
    "scrambler": "a scrambler",
}


@dataclass(frozen=True, kw_only=True)
class Candidate(Proposal):
    """One deployment: a mechanism with its local epsilon (nats), and a shuffler.

    `central` and `standard_error` hold at the worst dataset and the worst true share. `messages` and `bits` count what
    one person sends, `dummies` what the shuffler adds, all on average. `targets` are all targets of the request, with
    the figures that `assess` would compare. `specification` is TOML, ready to be assessed. `best` means Pareto-optimal:
    no other deployment that meets the targets is at least as good in central epsilon, local epsilon, error, messages,
    bits, dummies and shuffler, and better in at least one of these. `also` names other settings that give the same
    mechanism. `all_reports` is the local epsilon (nats) of all reports of one person; None if a person sends a
    single report.
    """

    sentence: str
    mechanism: str
    shuffler: str
    point: Point
    bits: float
    dummies: float
    shuffled: bool
    targets: tuple[Target, ...]
    specification: str
    protocol: Protocol = field(repr=False)
    messages: float = 1.0
    also: tuple[str, ...] = ()
    best: bool = False
    all_reports: Bound | None = None

    @property
    def unmet(self) -> tuple[Target, ...]:
        """The targets that are not met."""
        return tuple(target for target in self.targets if not target.met)

    @property
    def costs(self) -> tuple[float, ...]:
        """The numbers by which deployments are compared, privacy first; a smaller number is better."""
        privacy = (self.point.central.upper, self.point.local_epsilon)
        sent = (self.messages, self.bits, self.dummies)
        return (*privacy, self.point.standard_error, *sent, float(self.shuffled))


@dataclass(frozen=True, kw_only=True)
class Miss:
    """A mechanism behind a shuffler that does not meet the targets, and the reason in plain words.

    `local` is the local epsilon that meets the accuracy target (None: no local epsilon does, or none can be tried).
    `candidate` is the deployment with this local epsilon (None: no central figure was computed). `over` names the
    limit, "messages" or "bits", that the deployment exceeds although it meets all targets.
    """

    search: Search
    reason: str
    local: float | None = None
    candidate: Candidate | None = None
    over: str = ""


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """The request for a deployment: a specification's tables without [randomizer] and [shuffler], n people, k values.

    The limits are a person's average number of messages and of bits, and the number of a shuffler's dummies. Only an
    `honest` share of the people is assumed to send additional messages. `shufflers` are those without dummies to try.
    """

    tables: Mapping[str, Any]
    n: int
    k: int
    people: int
    file: str = "wishes"
    folder: Path = Path()
    most_messages: float = 1.0
    most_bits: float = math.inf
    most_dummies: int = 0
    honest: float = 1.0
    shufflers: tuple[str, ...] = ("uniform", "secure-aggregation", "none")

    def text(self, randomizer: Mapping[str, Any], shuffler: Mapping[str, Any]) -> str:
        """Return the complete specification with this randomizer and shuffler, as TOML."""
        return tomli_w.dumps({**self.tables, "randomizer": dict(randomizer), "shuffler": dict(shuffler)})

    def specification(self, randomizer: Mapping[str, Any], shuffler: Mapping[str, Any]) -> Specification:
        """Return the complete specification with this randomizer and shuffler; SpecificationError if it is invalid."""
        return parse(self.text(randomizer, shuffler), file=self.file, base_folder=self.folder)


@dataclass(frozen=True, kw_only=True)
class Search:
    """Searches for the local epsilon of one mechanism, with all other settings fixed, behind one shuffler."""

    wishes: Wishes
    kind: str
    beside: Mapping[str, Any]
    shuffler: Mapping[str, Any]

    @property
    def mechanism(self) -> str:
        """The name and the settings of the mechanism, in words."""
        beside = ", ".join(str(v) if isinstance(v, str) else f"{key} = {v:,}" for key, v in self.beside.items())
        return f"{self.kind.replace('-', ' ')}{f' ({beside})' if beside else ''}"

    @property
    def behind(self) -> str:
        """The name of the shuffler, in words."""
        return self.behind_of(self.shuffler)

    def behind_of(self, shuffler: Mapping[str, Any]) -> str:
        """Return the name of the shuffler `shuffler`, in words."""
        dummies = shuffler.get("dummies")
        return _BEHIND[shuffler["kind"]] + (f" with {dummies:,} dummies" if dummies else "")

    @property
    def name(self) -> str:
        """The names of the mechanism and the shuffler, in words."""
        return f"{self.mechanism}, {self.behind}"

    @cached_property
    def specification(self) -> Specification:
        """The specification with an arbitrary valid local epsilon."""
        return self.wishes.specification(self._randomizer(1.0), self.shuffler)

    @cached_property
    def exposure(self) -> Exposure:
        """The exposure of one person."""
        return Exposure.of(self.specification, k=self.wishes.k)

    def _randomizer(self, local: float) -> dict[str, Any]:
        return {"kind": self.kind, "epsilon": "inf" if math.isinf(local) else local, **self.beside}

    def protocol(self, local: float, shuffler: Mapping[str, Any] | None = None) -> Protocol:
        """Return the protocol with this local epsilon; settings that depend on epsilon are computed from it."""
        settings = {**self.beside, "epsilon": local}
        randomizer = RANDOMIZERS[self.kind].mechanism.from_settings(self.wishes.k, settings)
        built = self.specification.shuffler.model_copy(update=dict(shuffler or {})).build()
        return Protocol(randomizer=randomizer, shuffler=built, n=self.wishes.n)

    def run(self) -> Candidate | Miss:
        """Return a deployment that meets the targets and the limits, or a `Miss` that explains why none does."""
        result, allowed = self._found(), self.wishes
        if isinstance(result, Miss):
            return result
        if result.messages > allowed.most_messages:
            sent = number(result.messages, up=True)
            reason = f"It needs {sent} messages per person; the limit most_messages is {allowed.most_messages:g}."
            return Miss(search=self, reason=reason, candidate=result, over="messages")
        if result.bits > allowed.most_bits:
            reason = f"It needs {number(result.bits, up=True)} bits per person; most_bits is {allowed.most_bits:g}."
            return Miss(search=self, reason=reason, candidate=result, over="bits")
        return result

    def _found(self) -> Candidate | Miss:
        """Return a deployment that meets the targets, whatever its costs, or a `Miss` with the reason."""
        if self.specification.targets.standard_error is None:
            most = self._private()
            return Miss(search=self, reason=_REVEALING) if most is None else self._judged(most)
        local = self._accurate()
        if local is None:
            least = number(error_with(self.protocol, LARGEST_LOCAL), up=False)
            return Miss(search=self, reason=f"Its standard error is at least {least} for every local epsilon.")
        limit = self.specification.targets.local_epsilon
        if limit is not None and (took := self.exposure.local(self.protocol(local)).upper) > limit:
            reason = f"Accuracy needs a local epsilon of {number(took, up=True)}; targets.local_epsilon is {limit:g}."
            return Miss(search=self, reason=reason, local=local)
        return self._judged(local)

    def candidate(self, local: float, shuffler: Mapping[str, Any] | None = None) -> Candidate:
        """Return the deployment with this local epsilon, even if it does not meet the targets."""
        written = shuffler or self.shuffler
        protocol, targets = self.protocol(local, written), self.specification.targets
        point = point_at(protocol, local, targets.delta, self.exposure)
        own, behind = protocol.shuffler.own_messages, self.behind_of(written)
        noise = "no local epsilon" if math.isinf(local) else f"local epsilon {local:g}"
        return Candidate(
            sentence=f"{self.mechanism} with {noise}, {behind}",
            mechanism=self.mechanism,
            shuffler=behind,
            point=point,
            bits=(1 + own) * protocol.randomizer.layout.bits,
            dummies=0.0 if own else protocol.shuffler.expected_dummies,
            shuffled=written["kind"] != "none",
            targets=held(self.specification, protocol, self.exposure, point, self.wishes.people),
            specification=self.wishes.text(self._randomizer(local), written),
            protocol=protocol,
            messages=1 + own,
            all_reports=None if self.exposure.total == 1 else self.exposure.local(protocol),
        )

    def _judged(self, local: float, shuffler: Mapping[str, Any] | None = None) -> Candidate | Miss:
        candidate = self.candidate(local, shuffler)
        if candidate.met:
            return candidate
        unmet = " ".join(target.sentence for target in candidate.unmet)
        reason = f"With {candidate.shuffler}: {unmet}" if shuffler else f"With local epsilon {local:g}: {unmet}"
        return Miss(search=self, reason=reason, local=local, candidate=candidate)

    def _accurate(self) -> float | None:
        """Return the smallest local epsilon that meets the accuracy target, rounded up; None if there is none."""
        wanted = self.specification.targets.standard_error
        assert wanted is not None
        least = least_accurate(self.protocol, wanted)
        return None if least is None else min(rounded(least, up=True), LARGEST_LOCAL)

    def _private(self) -> float | None:
        """Return the largest local epsilon that meets the privacy targets; None if none of those tried does."""
        targets, most = self.specification.targets, self._most_local()
        # A local epsilon of at most the target for central epsilon meets this target for any number of people.
        least = _SMALL if targets.epsilon is None else min(targets.epsilon / self.exposure.total, most) * (1 - _HAIR)
        easiest = min(_SMALL, most)
        noise = Parameter(
            name="local epsilon", apply=self.protocol, easiest=easiest, hardest=most, start=least, resolution=_FINE
        )
        solution = solve(noise, Requirement(excess=self._short))
        if solution is None or solution.value == most:
            return None if solution is None else most
        return rounded(solution.value * (1 - _HAIR), up=False)

    def _most_local(self) -> float:
        """Return the largest local epsilon that meets targets.local_epsilon, the limit if the shuffler fails."""
        limit = self.specification.targets.local_epsilon
        if limit is None:
            return LARGEST_LOCAL
        most = max(rounded(limit / self.exposure.total, up=False), _SMALL)
        # The local epsilon of the implemented probabilities is rounded up.
        too_much = self.exposure.local(self.protocol(most)).upper > limit
        return rounded(most * (1 - _HAIR), up=False) if too_much else most

    def _short(self, protocol: Protocol) -> float:
        """Return the largest excess of central epsilon and of the figures of one report over their targets."""
        targets, short = self.specification.targets, -math.inf
        if targets.epsilon is not None:
            short = self._excess(protocol, targets.epsilon, targets.delta)
        if short > 0:
            return short
        limits = dict.fromkeys(GUESSES, targets.guessing) | {"re-identification": targets.reidentification}
        rows = [] if self.exposure.total > 1 else learned(self.specification, protocol)
        return max([short, *(log_excess(row.figure.upper, limits[row.question] or 0) for row in rows)])

    def _excess(self, protocol: Protocol, epsilon: float, delta: float) -> float:
        if self.exposure.drawn_again:
            return self.exposure.epsilon(protocol, delta=delta).upper - epsilon
        reports, rounds = self.exposure.reports, self.exposure.composed
        return excess(protocol, epsilon, delta, reports_per_person=reports, rounds=rounds)


def searches(wishes: Wishes) -> tuple[list[Search], list[Miss]]:
    """Return a search for each usable pair of mechanism and shuffler without dummies, and a `Miss` for other pairs."""
    fitting, misfits = [], []
    for kind, section in RANDOMIZERS.items():
        table = section.mechanism.table
        if table is None or table.numbers or "epsilon" not in table.settings:
            continue
        for beside in _variants(table.settings, wishes.k):
            for shuffler in wishes.shufflers:
                search = Search(wishes=wishes, kind=kind, beside=beside, shuffler={"kind": shuffler})
                why = _unfit(search)
                misfits += [Miss(search=search, reason=why)] if why else []
                fitting += [] if why else [search]
    return fitting, misfits


def with_dummies(search: Search, dummies: int) -> Search:
    """Return the search for the same mechanism behind a scrambler that adds `dummies` dummy reports."""
    return replace(search, shuffler={"kind": "scrambler", "dummies": dummies})


def _unfit(search: Search) -> str:
    """Return why the shuffler or the population does not support the mechanism; "" if some local epsilon works."""
    try:
        search.specification  # noqa: B018 - evaluated for its validation
        search.protocol(LARGEST_LOCAL)
    except SpecificationError as error:
        others = [one for one in error.problems if not one.key.startswith("shuffler")]
        return " ".join(f"{one.key} {one.rule}, got {one.value}." for one in others) or APART
    except InvalidInputError as error:
        return apart(error)
    return ""


def apart(error: Exception) -> str:
    """Return the message of an error as a plain sentence."""
    misfit = isinstance(error, InvalidInputError) and error.problem.key == "shuffler"
    return APART if misfit else str(error)


def _variants(settings: Mapping[str, Setting], k: int) -> Iterator[dict[str, Any]]:
    """Yield the settings to try in addition to epsilon: the defaults, every named choice, and promising numbers."""
    names = [name for name in settings if name != "epsilon"]
    options: list[tuple[Any, ...]] = [
        settings[name].choices or (None, *(tried for tried in settings[name].tried if tried < k)) for name in names
    ]
    for values in product(*options):
        yield {name: value for name, value in zip(names, values, strict=True) if value is not None}


def rounded(value: float, *, up: bool) -> float:
    """Return `value` with four significant digits, rounded up if `up`, else down."""
    return float(number(value, up=up, digits=_DIGITS).replace(",", ""))
