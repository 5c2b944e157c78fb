"""A deployment that sums numbers by several messages: its report, the claim, its assumptions, and other cases."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from hushuffle._version import __version__
from hushuffle.assessment import sums
from hushuffle.assessment.chapters import Chapter, Deployment, Draft, rounds, sent
from hushuffle.assessment.exposure import Exposure, chance, factor
from hushuffle.assessment.minimum_batch import SmallestBatch
from hushuffle.assessment.statement import digest, responsible, today
from hushuffle.assessment.sum_calibration import calibrate_sum, fewest_people
from hushuffle.assessment.targets import Choice
from hushuffle.assessment.warnings import about_rows
from hushuffle.mechanisms.split_and_mix import SplitAndMix
from hushuffle.model import Anonymity, Assumption, Bound, Cell, Progress, Report, Statement, Table, Unanswered, number
from hushuffle.questions import dp
from hushuffle.randomness import secure
from hushuffle.specification._base import unfit
from hushuffle.specification.population import People
from hushuffle.specification.sums import SumSpecification
from hushuffle.specification.warnings import ONE_NUMBER

UNIFORM = "Messages are uniform except for their sum, so no report belongs to a value or to a person."

_UNANSWERED = {"vulnerability": "Guessing a person's number", "re-identification": "Naming the sender of a report"}
_QUESTIONS = (
    ("singling-out", "Singling out: can a report be traced to the person who sent it?", UNIFORM),
    ("linkability", "Linkability: how much does a report reveal about its sender?", UNIFORM),
    (
        "inference",
        "Inference: can a person's answer be guessed from the release?",
        "Guessing was not analysed for sums, but the claim limits it.",
    ),
)


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

    def calibrate(self, progress: Progress | None = None) -> Choice:  # noqa: ARG002 - takes no time
        return calibrate_sum(self.specification, base_folder=self.folder)

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
        size = fewest_people(specification, self.people.n, wanted)
        if size is None:
            rule = "must be a value that some number of people achieves"
            unfit("targets.standard_error", rule, f"{wanted:g}", "Allow a larger one.")
        protocol, times, delta = specification.build(size), specification.times, specification.delta
        target = {"standard_error": wanted, "delta": delta, "reports_per_person": 1, "rounds": times}
        return SmallestBatch(
            words=protocol.describe().rstrip("."),
            size=size,
            bound=sums.of_rounds(specification, protocol, delta=delta),
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

        return audit_sum(self.specification, base_folder=self.folder, **options)

    def _learned(self, draft: Draft) -> None:
        specification, protocol = self.specification, self.protocol
        draft.words, draft.k, draft.population = protocol.describe(), protocol.grid.levels, self.people.population
        draft.specification = specification.effective()
        draft.findings += sums.sum_findings(specification, protocol)
        draft.targets = tuple(sums.sum_targets(specification, protocol))
        for question, topic in _UNANSWERED.items():
            draft.questions.unanswered.append(Unanswered(question=question, topic=topic, reason=UNIFORM))
        times = specification.times
        draft.facts = {
            "mechanism": "sum by several messages",
            "shuffler": "uniform",
            "delta": f"{specification.delta:g}",
            **rounds(Exposure(rounds=times)),
            **specification.asked.answer.facts(protocol.standard_error() / protocol.n, protocol.n),
            **sent([(protocol.messages, protocol.bits_per_message)], times=times),
        }

    def _tables(self, draft: Draft) -> None:
        specification, protocol, central = self.specification, self.protocol, draft.findings[0].bound
        draft.tables += [cases(specification, protocol, central), sums.costs(protocol), sums.accuracy(protocol)]
        draft.tables.append(sums.together(protocol))
        counted = self.people.population.counts is not None
        draft.statement = sum_statement(specification, protocol, central, one_row=counted)

    def _concerns(self, draft: Draft) -> None:
        draft.warnings += self.people.warnings
        draft.warnings += about_rows([self.specification.asked], base_folder=self.folder, remedy=ONE_NUMBER)
        draft.warnings += sums.sum_warnings(self.protocol)

    chapters = (
        Chapter("reading the data", 0.0, lambda total, _: total.people),
        Chapter("messages and noise", 0.4, lambda total, _: total.protocol),
        Chapter("what each adversary learns", 0.6, _learned),
        Chapter("its costs and its accuracy", 0.6, _tables),
        Chapter("warnings", 1.0, _concerns),
    )


def sum_statement(
    specification: SumSpecification, protocol: SplitAndMix, central: Bound, *, one_row: bool
) -> Statement:
    """`central` is the epsilon of all rounds; `one_row`: the data is assumed to have one row per person."""
    times, delta, names = factor(central.upper), specification.delta, specification.statement
    changes = f"by at most {times}" if times else "so much that an observer may read the numbers"
    rounds = f", in all {specification.times:,} rounds" if specification.times > 1 else ""
    out = "All released sums change" if rounds else "The released sum changes"
    run = f", run by {names.shuffler}," if names.shuffler else ""
    row = " Each row of data counts as one person." if one_row else ""
    return Statement(
        claim=(
            f"The release is (epsilon, delta)-differentially private with epsilon = {number(central.upper, up=True)} "
            f"and delta = {delta:g}: except with probability {delta:g}, seeing all messages changes the odds of any "
            f"conclusion about one person {changes}, whatever else is known, if {protocol.needed:,} people answer and "
            f"are honest{rounds}."
        ),
        unit=f"One person, whose number is replaced by any other{rounds}; how many people answer is public.{row}",
        threats=tuple(_threats(specification, protocol)),
        assumptions=tuple(
            Assumption(key=key, sentence=sentence, vouched=getattr(names.vouched, key) or "")
            for key, sentence in _assumptions(specification, protocol)
        ),
        scenarios=(),
        respondents=(
            f"Your device adds a little noise to your number and splits it into {protocol.messages_per_person:,} "
            "messages. A single message reveals nothing about your number, but all your messages together reveal it.",
            f"A shuffler{run} mixes your messages with those of all others, so that none can be recognized as yours.",
            f"{out} the odds of any conclusion about you {changes}, except with a probability of {chance(delta)}, "
            "even for an observer who knows the numbers of all others.",
            "If the shuffler reveals which messages are yours, nothing protects your number.",
            "The fact that you take part is not hidden.",
        ),
        anonymity=tuple(
            Anonymity(key=key, question=question, sentence=sentence, bound=None)
            for key, question, sentence in _QUESTIONS
        ),
        unprotected=(
            "Facts about the population as a whole: their publication is the purpose of the collection.",
            "Whether a person takes part, when, and from which address: network traffic was not analysed.",
            "Other collections about the same people: their epsilons add up with this one.",
            "The correctness of the sum: a single dishonest person can change it to any possible value.",
        ),
        facts=(
            *((("Author", names.author),) if names.author else ()),
            ("Date", f"{today()}, by hushuffle {__version__}"),
            ("Specification, SHA-256", digest(specification.effective())),
        ),
        responsible=responsible(names),
    )


def _threats(specification: SumSpecification, protocol: SplitAndMix) -> Iterator[str]:
    names = specification.statement
    analyst = f"The analyst ({names.analyst})" if names.analyst else "The analyst"
    who = f"The shuffler, run by {names.shuffler}," if names.shuffler else "The shuffler (set statement.shuffler)"
    yield f"{analyst} is not trusted: the claim holds even for an adversary who knows all other numbers."
    yield f"{who} is trusted to hide who sent which message. If it fails, nothing protects the numbers."
    others = protocol.n - protocol.needed
    if others:
        yield f"Up to {others:,} people in total may be absent, be dishonest or collude with the analyst."


def _assumptions(specification: SumSpecification, protocol: SplitAndMix) -> Iterator[tuple[str, str]]:
    times = specification.times
    again = f"more than {times:,} times" if times > 1 else "again"
    yield "one_answer", f"Each person gives one number{' a round' if times > 1 else ''}. More numbers reveal more."
    yield "no_repeats", f"No person is asked the same question {again}. The table of several sums shows the cost."
    yield "participation", "Participation is public, and does not depend on the numbers."
    yield "devices", "Devices run the mechanism as described, with unpredictable random numbers."
    honest = "answer, are honest and do not collude with the analyst"
    yield "honest", f"Of {protocol.n:,} people {protocol.needed:,} {honest}."
    yield "shuffler", "The shuffler does not reveal who sent which message, and does not collude with the analyst."
    yield "withheld", "The shuffler releases nothing if too few honest people answer."


def cases(specification: SumSpecification, protocol: SplitAndMix, central: Bound) -> Table:
    """Epsilon and errors in the planned case and in other cases, for example with fewer people."""
    planned = protocol.standard_error() / protocol.n
    times, delta = specification.times, specification.delta
    rounds = f" of all {times:,} rounds" if times > 1 else ""
    rows: list[tuple[str, Bound | str, float | str]] = [("As planned", central, planned)]
    spare = protocol.n - protocol.needed
    if spare:
        least = protocol.standard_error(protocol.needed) / protocol.needed
        rows.append((f"{spare:,} people do not answer, all others are honest", central, least))
        rows.append((f"{spare:,} people who answer collude with the analyst", central, planned))
    rows.append((f"{spare + 1:,} people do not answer, or collude with the analyst", "no guarantee", "none: withheld"))
    rows.append(("The shuffler is compromised", dp.local_epsilon(protocol), planned))
    return Table(
        key="cases",
        title="What if",
        caption=f"Central epsilon{rounds} at delta = {delta:g}, and the standard error of the mean.",
        columns=("case", "epsilon, proven", "standard error"),
        rows=tuple(rows),
    )
