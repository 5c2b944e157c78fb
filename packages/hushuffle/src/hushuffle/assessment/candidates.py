"""The request for a deployment, its candidates, and a search for each, whatever kind of file makes the request."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Final

from hushuffle.assessment.targets import Point, Proposal
from hushuffle.errors import InvalidInputError, SpecificationError
from hushuffle.model import Bound, Population, Table, Target, number
from hushuffle.specification.exposure import Exposure

_DIGITS: Final = 4
UNIFORM: Final[Mapping[str, Any]] = {"kind": "uniform"}
APART: Final = "This shuffler does not support the reports of this mechanism."

_BEHIND: Final = {
    "none": "no shuffler",
    "uniform": "a uniform shuffle",
    "secure-aggregation": "secure aggregation",
    "scrambler": "a scrambler",
    "augmented": "an augmented shuffle",
}


def of_key(key: str, value: float) -> str:
    """Return a changed target in the words of a file; infinity: the target is left out."""
    return f"no targets.{key}" if math.isinf(value) else f"targets.{key} = {value:g}"


@dataclass(frozen=True, kw_only=True)
class Candidate(Proposal):
    """One deployment: a mechanism with its local epsilon (nats), and a shuffler.

    `central` and `standard_error` hold at the worst dataset and the worst true share. `messages` and `bits` count what
    one person sends, `dummies` what the shuffler adds, all on average. `targets` are all targets of the request, with
    the figures that `assess` would compare. `specification` is TOML, ready to be assessed. `best` means Pareto-optimal:
    no other deployment that meets the targets is at least as good in central epsilon, local epsilon, error, messages,
    bits, dummies and shuffler, and better in at least one of these. `also` names other settings that give the same
    mechanism. `all_reports` is the local epsilon (nats) of all reports of one person; None if a person sends a
    single report. Candidates with equal `protocol` are the same deployment. `search` has this result.
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
    protocol: Any = field(repr=False)
    search: Search = field(repr=False, compare=False)
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

    @property
    def lack(self) -> tuple[int, int, float]:
        """A sort key, smaller if nearer to the targets: whether figures exist, number of missed targets, excess."""
        if self.candidate is None:
            return (2 if self.local is None else 1, 0, self.local or 0.0)
        if self.over:
            return 0, 0, self.candidate.messages
        ratios = [target.got.upper / target.asked for target in self.candidate.unmet if target.got is not None]
        return 0, len(self.candidate.unmet), max(ratios, default=float("inf"))


@dataclass(frozen=True, kw_only=True)
class Wishes(ABC):
    """The request for a deployment: the tables of its file, n people, k values. Each kind of file has a subclass.

    The limits are a person's average number of messages and of bits, and the number of a shuffler's dummies. Only an
    `honest` share of the people is assumed to send additional messages. `shufflers` are the tables of those to try, and
    `written` is the one of the file, whose settings are kept (None: the file has no such shuffler). A local epsilon
    that meets an accuracy target has this number of `digits`. No suggested change allows a larger error than
    `most_error`, and `changed` names the target that a change concerns, with its new limit.
    """

    tables: Mapping[str, Any]
    n: int = 1
    k: int = 2
    people: int = 1
    file: str = "wishes"
    folder: Path = Path()
    most_messages: float = 1.0
    most_bits: float = math.inf
    most_dummies: int = 0
    honest: float = 1.0
    shufflers: tuple[Mapping[str, Any], ...] = (UNIFORM,)
    written: Mapping[str, Any] | None = None
    digits: int = _DIGITS
    most_error: float = 0.25
    changed: Callable[[str, float], str] = of_key

    error_name: ClassVar[str] = "standard error"
    """The name of the error by which candidates are compared."""
    error_words: ClassVar[str] = "the error is the standard error of a share at the worst true share"
    """What the error is about, as the end of a sentence."""
    wanted_words: ClassVar[str] = "standard error of a share"
    """What the accuracy target limits."""
    usual_messages: ClassVar[float] = 1.0
    """The largest number of messages of a person, unless the caller gives one."""

    @abstractmethod
    def read(self) -> tuple[Wishes, Population]:
        """Return the request with the number of people and values, and the people. Values in the data are not used."""

    @abstractmethod
    def searches(self) -> tuple[list[Search], list[Miss]]:
        """Return a search for each candidate, and a `Miss` for each combination that cannot be a candidate."""

    @property
    @abstractmethod
    def whole(self) -> Any:
        """The specification of the file, with an arbitrary mechanism and shuffler if it leaves them open."""

    @property
    def targets(self) -> Any:
        """The section [targets] of the file."""
        return self.whole.targets

    @property
    @abstractmethod
    def exposure(self) -> Exposure:
        """The exposure of one person."""

    @property
    def delta(self) -> float:
        """The delta of targets.epsilon."""
        return float(self.targets.delta)

    @property
    def wanted(self) -> float | None:
        """The accuracy target; None: there is none."""
        wanted: float | None = self.targets.standard_error
        return wanted

    @property
    def local_limit(self) -> float | None:
        """The target for the local epsilon of all reports of one person; None: there is none."""
        limit: float | None = self.targets.local_epsilon
        return limit

    @property
    def on_levels(self) -> str:
        """The number of levels in words, as the end of the name of a mechanism for numbers."""
        return ""

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences that the report of this kind of request needs."""
        return ()

    def about(self, population: Population) -> str:
        """Return in words what people report."""
        return f"{len(population.labels):,} values"

    def remarks(self, errors: Mapping[str, float]) -> Iterator[str]:
        """Yield warnings about the errors of deployments, by name."""
        return useless(errors, self.k)


@dataclass(frozen=True, kw_only=True)
class Search(ABC):
    """Searches for the parameters of one mechanism behind one shuffler that meet the targets of a request."""

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
        if isinstance(dummies, Mapping):
            return f"{_BEHIND[shuffler['kind']]} with a random number of dummies ({dummies['kind']})"
        return _BEHIND[shuffler["kind"]] + (f" with {dummies:,} dummies" if dummies else "")

    @property
    def name(self) -> str:
        """The names of the mechanism and the shuffler, in words."""
        return f"{self.mechanism}, {self.behind}"

    @abstractmethod
    def misfit(self) -> str:
        """Return why the shuffler or the population does not support the mechanism; "" if both do."""

    def run(self) -> Candidate | Miss:
        """Return a deployment that meets the targets and the limits, or a `Miss` that explains why none does."""
        result, allowed = self._found(), self.wishes
        if isinstance(result, Miss):
            return result
        if result.messages > allowed.most_messages:
            sent = number(result.messages, up=True)
            reason = f"It needs {sent} messages per person; the limit most_messages is {allowed.most_messages:g}."
            return self.miss(reason, candidate=result, over="messages")
        if result.bits > allowed.most_bits:
            reason = f"It needs {number(result.bits, up=True)} bits per person; most_bits is {allowed.most_bits:g}."
            return self.miss(reason, candidate=result, over="bits")
        return result

    @abstractmethod
    def _found(self) -> Candidate | Miss:
        """Return a deployment that meets the targets, whatever its costs, or a `Miss` with the reason."""

    @abstractmethod
    def candidate(self, local: float, shuffler: Mapping[str, Any] | None = None) -> Candidate:
        """Return the deployment with this local epsilon, even if it does not meet the targets."""

    def repeated(self, candidate: Candidate) -> tuple[Table, ...]:  # noqa: ARG002 - others compare its reports
        """Return the comparison of fresh and memoized reports of several rounds; () if there is none."""
        return ()

    def miss(self, reason: str, **facts: Any) -> Miss:
        """Return that this search misses the targets, with the reason."""
        return Miss(search=self, reason=reason, **facts)

    def judged(self, local: float, shuffler: Mapping[str, Any] | None = None) -> Candidate | Miss:
        """Return the deployment with this local epsilon, or a `Miss` if it does not meet the targets."""
        candidate = self.candidate(local, shuffler)
        if candidate.met:
            return candidate
        unmet = " ".join(target.sentence for target in candidate.unmet)
        reason = f"With {candidate.shuffler}: {unmet}" if shuffler else f"With local epsilon {local:g}: {unmet}"
        return self.miss(reason, local=local, candidate=candidate)


def fit(proposed: Iterable[Search]) -> tuple[list[Search], list[Miss]]:
    """Return the searches whose mechanism, shuffler and population go together, and a `Miss` for each other search."""
    fitting, misfits = list[Search](), list[Miss]()
    for search in proposed:
        reason = search.misfit()
        misfits += [Miss(search=search, reason=reason)] if reason else []
        fitting += [] if reason else [search]
    return fitting, misfits


def with_dummies(search: Search, dummies: int) -> Search:
    """Return the search for the same mechanism behind a scrambler that adds `dummies` dummy reports."""
    return replace(search, shuffler={"kind": "scrambler", "dummies": dummies})


def reasons(error: SpecificationError) -> str:
    """Return the problems of a specification as sentences, without those of its shuffler."""
    problems = [problem for problem in error.problems if not problem.key.startswith("shuffler")]
    return " ".join(f"{problem.key} {problem.rule}, got {problem.value}." for problem in problems)


def apart(error: Exception) -> str:
    """Return the message of an error as a plain sentence."""
    misfit = isinstance(error, InvalidInputError) and error.problem.key == "shuffler"
    return APART if misfit else str(error)


def rounded(value: float, *, up: bool, digits: int = _DIGITS) -> float:
    """Return `value` with this number of significant digits, rounded up if `up`, else down."""
    return float(number(value, up=up, digits=digits).replace(",", ""))


def useless(errors: Mapping[str, float], k: int) -> Iterator[str]:
    """One warning that names all deployments whose standard error exceeds 1/k; none if there are none.

    >>> list(useless({"row 1": 0.01, "row 2": 0.53}, 4))
    ['The standard error of row 2 is larger than an even share (1/4 = 0.25): most shares cannot be estimated.']
    """
    names = [name for name, error in errors.items() if error > 1 / k]
    if names:
        shown = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
        yield (
            f"The standard error of {shown} is larger than an even share (1/{k:,} = {1 / k:.4g}): most shares cannot "
            "be estimated."
        )
