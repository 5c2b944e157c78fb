"""One mechanism behind one shuffler: the local epsilon that suits the targets, and whether they are met with it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, Final

import tomli_w

from hushuffle.assessment.calibrate import Point, held, learned, point_at
from hushuffle.assessment.exposure import Exposure
from hushuffle.assessment.targets import GUESSES
from hushuffle.assessment.trials import error_with, least_accurate
from hushuffle.errors import InvalidInputError, SpecificationError
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers.settings import Setting
from hushuffle.model import Target, number
from hushuffle.numerics.roots import halved
from hushuffle.questions.dp.calibration import LARGEST_LOCAL, excess
from hushuffle.specification import Specification, parse
from hushuffle.specification.kinds import RANDOMIZERS

_FEW_STEPS: Final = 10
_DIGITS: Final = 4
_HAIR: Final = 1e-3
_SMALL: Final = 1e-3
"""The smallest local epsilon that is tried where no accuracy is asked for."""

_REVEALING: Final = f"Not private enough, with any local epsilon from {_SMALL:g}."
APART: Final = "Its reports do not go with this shuffler."

_BEHIND: Final = {
    "none": "no shuffler",
    "uniform": "a uniform shuffle",
    "secure-aggregation": "secure aggregation",
    "scrambler": "a scrambler",
}


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One deployment: what the device does, what the shuffler does, with the local epsilon (nats) that was found.

    `central` and `standard_error` are those of `point`, at the worst dataset and the worst true share; `messages` and
    `bits` are those of one person, `dummies` those of the shuffler, all on average. `targets` are all that are asked,
    judged as `assess` does. `specification` is TOML, ready to be assessed. `best`: no other one that meets the targets
    is at least as good in all of central epsilon, local epsilon, error, messages, bits, dummies and shuffler, and
    better in one. `also` are other names of the same mechanism: numbers that it chooses by itself.
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

    @property
    def met(self) -> bool:
        """Whether all targets are met."""
        return all(target.met for target in self.targets)

    @property
    def unmet(self) -> tuple[Target, ...]:
        """The targets that are not met."""
        return tuple(target for target in self.targets if not target.met)

    @property
    def costs(self) -> tuple[float, ...]:
        """What there is to be paid, smaller is better, privacy first."""
        privacy = (self.point.central.upper, self.point.local_epsilon)
        sent = (self.messages, self.bits, self.dummies)
        return (*privacy, self.point.standard_error, *sent, float(self.shuffled))


@dataclass(frozen=True, kw_only=True)
class Miss:
    """A mechanism behind a shuffler that does not meet the targets, and why, in plain words.

    `local` is the local epsilon that it takes for the accuracy, None where none does or it cannot be tried at all;
    `candidate` is what it gives, None where no central figure was computed. `over`: the limit, "messages" or
    "bits", of which a person would have to send more, where that is all that is amiss.
    """

    search: Search
    reason: str
    local: float | None = None
    candidate: Candidate | None = None
    over: str = ""


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What is asked: the tables of a specification without [randomizer] and [shuffler], for n people and k values.

    A person may send so many messages and bits at most, on average; a shuffler may add so many dummies. Of further
    messages an `honest` share of the people is counted on.
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

    def text(self, randomizer: Mapping[str, Any], shuffler: Mapping[str, Any]) -> str:
        """Return a whole specification, TOML."""
        return tomli_w.dumps({**self.tables, "randomizer": dict(randomizer), "shuffler": dict(shuffler)})

    def specification(self, randomizer: Mapping[str, Any], shuffler: Mapping[str, Any]) -> Specification:
        """Return a whole specification; whatever breaks a rule raises SpecificationError."""
        return parse(self.text(randomizer, shuffler), file=self.file, base_folder=self.folder)


@dataclass(frozen=True, kw_only=True)
class Search:
    """One mechanism with what is chosen beside its epsilon, behind one shuffler."""

    wishes: Wishes
    kind: str
    beside: Mapping[str, Any]
    shuffler: Mapping[str, Any]

    @property
    def mechanism(self) -> str:
        """Its kind and settings, in a few words."""
        beside = ", ".join(str(v) if isinstance(v, str) else f"{key} = {v:,}" for key, v in self.beside.items())
        return f"{self.kind.replace('-', ' ')}{f' ({beside})' if beside else ''}"

    @property
    def behind(self) -> str:
        """The shuffler, in a few words."""
        return self.behind_of(self.shuffler)

    def behind_of(self, shuffler: Mapping[str, Any]) -> str:
        """Return one shuffler in a few words."""
        dummies = shuffler.get("dummies")
        return _BEHIND[shuffler["kind"]] + (f" with {dummies:,} dummies" if dummies else "")

    @property
    def name(self) -> str:
        """Both, in a few words."""
        return f"{self.mechanism}, {self.behind}"

    @cached_property
    def specification(self) -> Specification:
        """The specification, with some local epsilon."""
        return self.wishes.specification(self._randomizer(1.0), self.shuffler)

    @cached_property
    def exposure(self) -> Exposure:
        """What one person gives."""
        return Exposure.of(self.specification, k=self.wishes.k)

    def _randomizer(self, local: float) -> dict[str, Any]:
        return {"kind": self.kind, "epsilon": "inf" if math.isinf(local) else local, **self.beside}

    def protocol(self, local: float, shuffler: Mapping[str, Any] | None = None) -> Protocol:
        """Return the deployment with a local epsilon; what the mechanism chooses by itself is chosen for it."""
        settings = {**self.beside, "epsilon": local}
        made = RANDOMIZERS[self.kind].mechanism.from_settings(self.wishes.k, settings)
        built = self.specification.shuffler.model_copy(update=dict(shuffler or {})).build()
        return Protocol(randomizer=made, shuffler=built, n=self.wishes.n)

    def run(self) -> Candidate | Miss:
        """Return what meets the targets within the limits, or why nothing does."""
        found, allowed = self._found(), self.wishes
        if isinstance(found, Miss):
            return found
        if found.messages > allowed.most_messages:
            sent = number(found.messages, up=True)
            reason = f"Takes {sent} messages of each person; {allowed.most_messages:g} may be sent (most_messages)."
            return Miss(search=self, reason=reason, candidate=found, over="messages")
        if found.bits > allowed.most_bits:
            reason = f"Takes {number(found.bits, up=True)} bits of each person; {allowed.most_bits:g} may be sent."
            return Miss(search=self, reason=reason, candidate=found, over="bits")
        return found

    def _found(self) -> Candidate | Miss:
        """Return what meets the targets, or why nothing does."""
        if self.specification.targets.standard_error is None:
            most = self._private()
            return Miss(search=self, reason=_REVEALING) if most is None else self._judged(most)
        local = self._accurate()
        if local is None:
            return Miss(search=self, reason=self._too_coarse())
        asked = self.specification.targets.local_epsilon
        if asked is not None and (took := self.exposure.local(self.protocol(local)).upper) > asked:
            reason = f"Accurate enough from a local epsilon of {number(took, up=True)}; {asked:g} is allowed."
            return Miss(search=self, reason=reason, local=local)
        return self._judged(local)

    def candidate(self, local: float, shuffler: Mapping[str, Any] | None = None) -> Candidate:
        """Return the deployment with a local epsilon, whether or not it meets the targets."""
        written = shuffler or self.shuffler
        protocol, asked = self.protocol(local, written), self.specification.targets
        point = point_at(protocol, local, asked.delta, self.exposure)
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
        )

    def _judged(self, local: float, shuffler: Mapping[str, Any] | None = None) -> Candidate | Miss:
        found = self.candidate(local, shuffler)
        if found.met:
            return found
        unmet = " ".join(target.sentence for target in found.unmet)
        reason = f"With {found.shuffler}: {unmet}" if shuffler else f"With local epsilon {local:g}: {unmet}"
        return Miss(search=self, reason=reason, local=local, candidate=found)

    def _error(self, local: float) -> float:
        return error_with(self.protocol, local)

    def _accurate(self) -> float | None:
        """Return the smallest local epsilon that is accurate enough, rounded up; None: none is."""
        wanted = self.specification.targets.standard_error
        assert wanted is not None
        least = least_accurate(self.protocol, wanted)
        return None if least is None else min(rounded(least, up=True), LARGEST_LOCAL)

    def _too_coarse(self) -> str:
        least = number(self._error(LARGEST_LOCAL), up=False)
        return f"Its standard error is {least} at least, whatever the local epsilon is."

    def _private(self) -> float | None:
        """Return the largest local epsilon that meets the privacy targets; None: none that is tried does."""
        asked, most = self.specification.targets, self._most_local()
        # A local epsilon that is no larger than the central one meets it whatever the crowd is.
        least = _SMALL if asked.epsilon is None else min(asked.epsilon / self.exposure.total, most) * (1 - _HAIR)
        if self._is_private(most):
            return most
        if not self._is_private(least):
            if not self._is_private(_SMALL):
                return None
            least, most = _SMALL, least
        logarithm = halved(
            lambda exponent: self._is_private(math.exp(exponent)),
            good=math.log(least),
            bad=math.log(most),
            times=_FEW_STEPS,
        )
        return rounded(math.exp(logarithm) * (1 - _HAIR), up=False)

    def _most_local(self) -> float:
        """Return the largest local epsilon that is allowed if the shuffler fails."""
        asked = self.specification.targets.local_epsilon
        if asked is None:
            return LARGEST_LOCAL
        most = max(rounded(asked / self.exposure.total, up=False), _SMALL)
        # The local epsilon of what is implemented is rounded up.
        too_much = self.exposure.local(self.protocol(most)).upper > asked
        return rounded(most * (1 - _HAIR), up=False) if too_much else most

    def _is_private(self, local: float) -> bool:
        """Return whether central epsilon and what is learned from one report are within the targets."""
        return self._short(self.protocol(local)) <= 0

    def _short(self, made: Protocol) -> float:
        """Return a number above 0 if central epsilon or what is learned from one report exceeds the targets."""
        asked, short = self.specification.targets, -math.inf
        if asked.epsilon is not None:
            short = self._excess(made, asked.epsilon, asked.delta)
        if short > 0:
            return short
        limits = dict.fromkeys(GUESSES, asked.guessing) | {"re-identification": asked.reidentification}
        rows = [] if self.exposure.total > 1 else learned(self.specification, made)
        return short if all(row.figure.upper <= (limits[row.question] or 0) for row in rows) else 1.0

    def _excess(self, protocol: Protocol, epsilon: float, delta: float) -> float:
        reports, rounds = self.exposure.reports, self.exposure.composed
        return excess(protocol, epsilon, delta, reports_per_person=reports, rounds=rounds)


def searches(wishes: Wishes) -> tuple[list[Search], list[Miss]]:
    """Return one search for each mechanism and shuffler without dummies that fit, and why others do not."""
    made, misfits = [], []
    for kind, section in RANDOMIZERS.items():
        table = section.mechanism.table
        if table is None or table.numbers or "epsilon" not in table.settings:
            continue
        for beside in _variants(table.settings, wishes.k):
            for shuffler in ("uniform", "secure-aggregation", "none"):
                one = Search(wishes=wishes, kind=kind, beside=beside, shuffler={"kind": shuffler})
                why = _unfit(one)
                misfits += [Miss(search=one, reason=why)] if why else []
                made += [] if why else [one]
    return made, misfits


def with_dummies(search: Search, dummies: int) -> Search:
    """Return the same mechanism behind a scrambler."""
    return replace(search, shuffler={"kind": "scrambler", "dummies": dummies})


def _unfit(search: Search) -> str:
    """Return why a mechanism does not go with a shuffler, or the people; "" if it does with some local epsilon."""
    try:
        search.specification  # noqa: B018 - it is parsed
        search.protocol(LARGEST_LOCAL)
    except SpecificationError as error:
        others = [one for one in error.problems if not one.key.startswith("shuffler")]
        return " ".join(f"{one.key} {one.rule}, got {one.value}." for one in others) or APART
    except InvalidInputError as error:
        return apart(error)
    return ""


def apart(error: Exception) -> str:
    """Return a refusal in plain words."""
    return APART if str(error).startswith("`shuffler`") else str(error)


def _variants(settings: Mapping[str, Setting], k: int) -> Iterator[dict[str, Any]]:
    """Yield what may be chosen beside epsilon: nothing, each word of a choice, each number that is worth a try."""
    names = [name for name in settings if name != "epsilon"]
    options: list[tuple[Any, ...]] = [
        settings[name].choices or (None, *(tried for tried in settings[name].tried if tried < k)) for name in names
    ]
    for values in product(*options):
        yield {name: value for name, value in zip(names, values, strict=True) if value is not None}


def rounded(value: float, *, up: bool) -> float:
    """Return a number of four digits on the safe side."""
    return float(number(value, up=up, digits=_DIGITS).replace(",", ""))
