"""A deployment that sums numbers by several messages: its calibration, its report, and its first page."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from hushuffle.assessment import sums
from hushuffle.assessment.chapters import Chapter, Deployment, Draft, sent
from hushuffle.assessment.findings import RELEASE, SHUFFLER
from hushuffle.assessment.minimum_batch import SmallestBatch
from hushuffle.assessment.statement import DEVICES, TAKING_PART, ClaimPage
from hushuffle.assessment.sum_calibration import SumCalibration
from hushuffle.assessment.targets import Choice, delta_check, enough_people, error_of_mean
from hushuffle.assessment.warnings import about_rows
from hushuffle.curves.laws.shared_sums import SharedSums
from hushuffle.mechanisms.settings import LARGEST_EPSILON
from hushuffle.mechanisms.split_and_mix import SplitAndMix
from hushuffle.model import Bound, Cell, Finding, Progress, Report, Table, Target
from hushuffle.questions import dp
from hushuffle.randomness import secure
from hushuffle.specification._base import unfit
from hushuffle.specification.exposure import Exposure, chance, factor
from hushuffle.specification.population import ONE_NUMBER, People
from hushuffle.specification.sums import SumSpecification

UNIFORM = "Messages are uniform except for their sum, so no report belongs to a value or to a person."

_UNANSWERED = {"vulnerability": "Guessing a person's number", "re-identification": "Naming the sender of a report"}


class Total(Deployment):
    """A sum of numbers by several messages."""

    def __init__(self, specification: SumSpecification, folder: Path) -> None:
        super().__init__(specification, "Assessment of a sum by several messages", folder)
        self.specification = specification

    @cached_property
    def people(self) -> People:
        return self.specification.asked.read(self.folder, rng=secure())

    @cached_property
    def protocol(self) -> SplitAndMix:
        return self.specification.build(self.people.n)

    def planned(self, colluders: int) -> Total:  # noqa: ARG002 - the sum names those that it allows
        return self

    def central(self, protocol: SplitAndMix, *, delta: float) -> Bound:
        """Return the central epsilon of all rounds together."""
        return dp.compose([(protocol, self.specification.times)], delta=delta)

    def held(self, protocol: SplitAndMix) -> Iterator[Target]:
        """Yield each target of the specification, with the computed number that must meet it."""
        specification, targets = self.specification, self.specification.targets
        if targets.epsilon is not None:
            delta = specification.wanted_delta
            topic, got = f"Central epsilon at delta = {delta:g}", self.central(protocol, delta=delta)
            yield Target(key="epsilon", topic=topic, rule="at most", asked=targets.epsilon, got=got)
        yield delta_check(specification.delta, protocol.n)
        if targets.people is not None:
            yield enough_people(targets.people, protocol.n)
        if targets.standard_error is not None:
            yield error_of_mean(targets.standard_error, protocol.standard_error() / protocol.n)
        if targets.bits is not None:
            got, topic = Bound.exact(float(protocol.bits_per_person), unit="bits"), "Bits of each person"
            yield Target(key="bits", topic=topic, rule="at most", asked=float(targets.bits), got=got)

    def altered(self, protocol: SplitAndMix) -> Total:
        """Return the deployment changed to the levels, noise and messages of `protocol`."""
        assert protocol.levels is not None
        epsilon, delta, levels = protocol.epsilon, protocol.delta, protocol.levels
        return Total(self.specification.altered(epsilon=epsilon, delta=delta, levels=levels), self.folder)

    def calibrate(self, progress: Progress | None = None) -> Choice:  # noqa: ARG002 - takes no time
        """Return the levels, noise and messages that meet the targets, or how many people are needed if none do.

        Of the data, only the number of people is used. The error is for numbers with the largest rounding error.

        Raises:
            SpecificationError: neither targets.epsilon nor targets.standard_error is set, or no sum meets a target.
            DataError, MissingDependencyError: the data cannot be used.

        >>> from hushuffle.specification.sums import parse_sum
        >>> choice = Total(parse_sum('''
        ...     population = { n = 10_000, kind = "number", low = 0, high = 100, levels = 11 }
        ...     sum = { epsilon = 1.0, delta = 1e-9 }
        ...     targets = { epsilon = 0.5, standard_error = 0.1 }
        ... '''), Path()).calibrate()
        >>> protocol = choice.proposed.protocol
        >>> protocol.levels, protocol.messages, protocol.bits_per_person, round(choice.proposed.standard_error, 4)
        (126, 7, 147, 0.0286)
        >>> choice.accurate.protocol.epsilon, choice.met
        (0.1429, True)
        """
        specification, epsilon = self.specification, self.specification.targets.epsilon
        wanted = specification.targets.standard_error
        if epsilon is None and wanted is None:
            hint = "Or set targets.standard_error to search for the smallest epsilon with this error."
            unfit("targets.epsilon", "must be given to calibrate", "nothing", hint)
        search = SumCalibration(specification, self.people.n)
        private = None if epsilon is None else search.private(epsilon)
        accurate = None if wanted is None else search.accurate(wanted)
        chosen = private or accurate
        if chosen is None:
            rule = f"must be a value that some epsilon up to {LARGEST_EPSILON:g} achieves"
            hint = f"With {self.people.n:,} people: allow a larger error, or ask more people."
            unfit("targets.standard_error", rule, f"{wanted:g}", hint)
        needed = None
        if private is not None and wanted is not None and private.standard_error > wanted:
            needed = search.people(private.protocol.epsilon, wanted)
        proposed = self.altered(chosen.protocol)
        return Choice(
            kind="sum",
            title=specification.title or "Calibration of a sum by several messages",
            population=self.people.population,
            epsilon=epsilon,
            delta=specification.wanted_delta,
            standard_error=wanted,
            deployment=self.protocol.describe(),
            written=search.point(self.protocol),
            private=private,
            accurate=accurate,
            people=needed,
            specification=proposed.specification.effective(),
            targets=tuple(proposed.held(chosen.protocol)),
        )

    def colluders(self) -> int:
        return self.protocol.n - self.protocol.needed

    def central_with(self, colluders: int, draft: Draft) -> Cell:
        spared = colluders <= self.protocol.n - self.protocol.needed
        return draft.findings[0].bound if spared else "no guarantee"

    def smallest_batch(self) -> SmallestBatch:
        """Return the fewest people for targets.standard_error, since epsilon of a sum is the same for all numbers."""
        specification, wanted = self.specification, self.specification.targets.standard_error
        if wanted is None:
            hint = "Central epsilon of a sum is the same for any number of people; only the error of the mean depends "
            unfit("targets.standard_error", "must be given", "nothing", f"{hint}on it.")
        size = SumCalibration(specification, self.people.n).fewest_people(wanted)
        if size is None:
            rule = "must be a value that some number of people achieves"
            unfit("targets.standard_error", rule, f"{wanted:g}", "Allow a larger one.")
        protocol, times, delta = specification.build(size), specification.times, specification.delta
        target = {"standard_error": wanted, "delta": delta, "reports_per_person": 1, "rounds": times}
        return SmallestBatch(
            words=protocol.describe().rstrip("."),
            size=size,
            bound=self.central(protocol, delta=delta),
            target=target,
            parameters={
                **target,
                "epsilon": specification.sum.epsilon,
                "levels": protocol.levels,
                "messages": protocol.messages,
                "people_needed_honest": protocol.needed,
                "release": "messages of a sum",
            },
        )

    def audit(self, **options: Any) -> Report:
        from hushuffle.attacks.audit_specification import audit_sum  # noqa: PLC0415 - only this verb needs it

        self.specification.one_number("audit")
        return audit_sum(self.specification, base_folder=self.folder, **options)

    def _learned(self, draft: Draft) -> None:
        specification, protocol = self.specification, self.protocol
        draft.words, draft.k, draft.population = protocol.describe(), protocol.grid.levels, self.people.population
        draft.specification = specification.effective()
        central, by_row = self.central(protocol, delta=specification.delta), self.people.population.counts is not None
        page = SumPage(specification, protocol, central, by_row=by_row)
        draft.findings += page.findings()
        draft.tables += [page.cases(), sums.costs(protocol), sums.accuracy(protocol), sums.together(protocol)]
        draft.statement = page.statement()
        draft.targets = tuple(self.held(protocol))
        draft.questions.refuse(_UNANSWERED, UNIFORM)
        times = specification.times
        draft.facts = {
            "mechanism": "sum by several messages",
            "shuffler": "uniform",
            "delta": f"{specification.delta:g}",
            **Exposure(rounds=times).facts,
            **specification.asked.answer.facts(protocol.standard_error() / protocol.n, protocol.n),
            **sent([(protocol.messages_per_person, protocol.bits_per_message)], times=times),
        }

    def _concerns(self, draft: Draft) -> None:
        draft.warnings += self.people.warnings
        draft.warnings += about_rows([self.specification.asked], base_folder=self.folder, remedy=ONE_NUMBER)
        draft.warnings += sums.sum_warnings(self.protocol)

    chapters = (
        Chapter("reading the data", 0.0, lambda total, _: total.people),
        Chapter("messages and noise", 0.4, lambda total, _: total.protocol),
        Chapter("what each adversary learns", 0.6, _learned),
        Chapter("warnings", 1.0, _concerns),
    )


class SumPage(ClaimPage):
    """The first page about a sum; `central` is the epsilon of all rounds."""

    def __init__(self, specification: Any, protocol: SplitAndMix, central: Bound, *, by_row: bool) -> None:
        super().__init__(specification.statement, specification.delta, specification.effective())
        self.protocol, self.times, self.central = protocol, specification.times, central
        times = factor(central.upper)
        self.changes = f"by at most {times}" if times else "so much that an observer may read the numbers"
        self.rounds = f", in all {self.times:,} rounds" if self.times > 1 else ""
        self.spare = protocol.n - protocol.needed
        self.row = " Each row of data counts as one person." if by_row else ""

    def findings(self) -> Iterator[Finding]:
        """Yield what an adversary learns from the release, and from a compromised shuffler."""
        rounds = f" of all {self.times:,} rounds" if self.times > 1 else ""
        times = factor(self.central.upper)
        effect = f"changes the odds of any conclusion about you by at most {times}"
        numbers = "numbers" if self.protocol.coordinates > 1 else "number"
        colluding = f", and while colluding with {self.spare:,} of the people," if self.spare else ""
        yield Finding(
            question="central-dp",
            adversary=RELEASE,
            sentence=(
                f"Whatever else they know{colluding} seeing all messages{rounds} "
                f"{effect if times else 'may reveal your numbers'} (delta = {self.delta:g}). This needs "
                f"{self.protocol.needed:,} honest people who answer, and a shuffler that releases nothing if fewer do."
            ),
            bound=self.central,
            proof=SharedSums.proof,
        )
        yield Finding(
            question="local-dp",
            adversary=SHUFFLER,
            sentence=(
                f"Your messages add up to your {numbers} plus your small share of the noise. If the shuffler reveals "
                f"the senders, this share alone does not protect your {numbers}."
            ),
            bound=dp.local_epsilon(self.protocol),
            proof=f"each person adds zero noise with probability {self.protocol.noise.ties:.4g}",
        )

    def claim(self) -> str:
        honest = f"if {self.protocol.needed:,} people answer and are honest{self.rounds}"
        return self.claimed(self.central, f"{self.promise('all messages', self.changes)}, {honest}.")

    def unit(self) -> str:
        rounds, row = self.rounds, self.row
        return f"One person, whose number is replaced by any other{rounds}; how many people answer is public.{row}"

    def threats(self) -> Iterator[str]:
        yield self.analyst("numbers")
        yield f"{self.shuffler} is trusted to hide who sent which message. If it fails, nothing protects the numbers."
        if self.spare:
            yield f"Up to {self.spare:,} people in total may be absent, be dishonest or collude with the analyst."

    def assumptions(self) -> Iterator[tuple[str, str]]:
        times, protocol = self.times, self.protocol
        again = f"more than {times:,} times" if times > 1 else "again"
        yield "one_answer", f"Each person gives one number{' a round' if times > 1 else ''}. More numbers reveal more."
        yield "no_repeats", f"No person is asked the same question {again}. The table of several sums shows the cost."
        yield "participation", "Participation is public, and does not depend on the numbers."
        yield "devices", DEVICES
        honest = "answer, are honest and do not collude with the analyst"
        yield "honest", f"Of {protocol.n:,} people {protocol.needed:,} {honest}."
        yield "shuffler", "The shuffler does not reveal who sent which message, and does not collude with the analyst."
        yield "withheld", "The shuffler releases nothing if too few honest people answer."

    def respondents(self) -> Iterator[str]:
        yield (
            "Your device adds a little noise to your number and splits it into "
            f"{self.protocol.messages_per_person:,} messages. A single message reveals nothing about your number, but "
            "all your messages together reveal it up to this noise."
        )
        yield (
            f"A shuffler{self.run} mixes your messages with those of all others, so that none can be recognized as "
            "yours."
        )
        out = "All released sums change" if self.rounds else "The released sum changes"
        yield (
            f"{out} the odds of any conclusion about you {self.changes}, except with a probability of "
            f"{chance(self.delta)}, even for an observer who knows the numbers of all others."
        )
        yield "If the shuffler reveals which messages are yours, nothing protects your number."
        yield TAKING_PART

    def answered(self, key: str) -> tuple[str, Bound | None]:
        guessing = "Guessing was not analysed for sums, but the claim limits it."
        return guessing if key == "inference" else UNIFORM, None

    def unprotected(self) -> Iterator[str]:
        yield "The correctness of the sum: a single dishonest person can change it to any possible value."

    def cases(self) -> Table:
        """Return epsilon and errors in the planned case and in other cases, for example with fewer people."""
        protocol, central, spare = self.protocol, self.central, self.spare
        planned = protocol.standard_error() / protocol.n
        rounds = f" of all {self.times:,} rounds" if self.times > 1 else ""
        rows: list[tuple[str, Bound | str, float | str]] = [("As planned", central, planned)]
        if spare:
            least = protocol.standard_error(protocol.needed) / protocol.needed
            rows.append((f"{spare:,} people do not answer, all others are honest", central, least))
            rows.append((f"{spare:,} people who answer collude with the analyst", central, planned))
        rows += [(f"{spare + 1:,} people do not answer", "no guarantee", "none: no release")]
        rows += [(f"{spare + 1:,} people who answer collude with the analyst", "no guarantee", planned)]
        rows += [("The shuffler is compromised", dp.local_epsilon(protocol), planned)]
        return Table(
            key="cases",
            title="What if",
            caption=f"Central epsilon{rounds} at delta = {self.delta:g}, and the standard error of the mean.",
            columns=("case", "epsilon, proven", "standard error"),
            rows=tuple(rows),
        )
