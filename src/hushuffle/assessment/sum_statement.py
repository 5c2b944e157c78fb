"""Write the first page about a sum by several messages: the claim, its assumptions, and other cases."""

from __future__ import annotations

from collections.abc import Iterator

from hushuffle._version import __version__
from hushuffle.assessment.exposure import chance, factor
from hushuffle.assessment.statement import digest, responsible, today
from hushuffle.mechanisms.split_and_mix import SplitAndMix
from hushuffle.model import Anonymity, Assumption, Bound, Statement, Table, number
from hushuffle.questions import dp
from hushuffle.specification.sums import SumSpecification

UNIFORM = "Messages are uniform except for their sum, so no report belongs to a value or to a person."

_QUESTIONS = (
    ("singling-out", "Singling out: can a report be traced to the person who sent it?", UNIFORM),
    ("linkability", "Linkability: how much does a report reveal about its sender?", UNIFORM),
    (
        "inference",
        "Inference: can a person's answer be guessed from the release?",
        "Guessing was not analysed for sums, but the claim limits it.",
    ),
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
