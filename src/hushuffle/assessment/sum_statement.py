"""The first page about a sum by several messages: a claim, what it rests on, and what happens otherwise."""

from __future__ import annotations

from collections.abc import Iterator

from hushuffle._version import __version__
from hushuffle.assessment.odds import chance, factor
from hushuffle.assessment.statement import digest, responsible, today
from hushuffle.mechanisms.split_and_mix import SplitAndMix
from hushuffle.model import Anonymity, Assumption, Bound, Statement, Table, number
from hushuffle.questions import dp
from hushuffle.specification.sums import SumSpecification

UNIFORM = "Messages are uniform but for their sum: there is no report that belongs to a value or to a person."

_QUESTIONS = (
    ("singling-out", "Singling out: can a report be traced to the person who sent it?", UNIFORM),
    ("linkability", "Linkability: how much does a report say about whose it is?", UNIFORM),
    (
        "inference",
        "Inference: can a person's answer be guessed from the release?",
        "By no more than the claim allows: no adversary who guesses is analysed for a sum.",
    ),
)


def sum_statement(
    specification: SumSpecification, protocol: SplitAndMix, central: Bound, *, one_row: bool
) -> Statement:
    """Return the first page from what was computed; `central` is epsilon of all rounds together.

    Of a file with `one_row` of data for each person it says that this is assumed.
    """
    times, delta, said = factor(central.upper), specification.delta, specification.statement
    changes = f"by at most {times}" if times else "so much that numbers can be readable"
    rounds = f", in all {specification.times:,} rounds" if specification.times > 1 else ""
    out = "All sums that come out change" if rounds else "The sum that comes out changes"
    run = f", run by {said.shuffler}," if said.shuffler else ""
    row = " One row of data is taken for one person." if one_row else ""
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
            Assumption(key=key, sentence=sentence, vouched=getattr(said.vouched, key) or "")
            for key, sentence in _assumptions(specification, protocol)
        ),
        scenarios=(),
        respondents=(
            f"Your device adds a little noise to your number and splits it into {protocol.messages_per_person:,} "
            "messages. None of them alone says anything about it; all of yours together do.",
            f"A shuffler{run} mixes your messages with those of all others, so that nobody knows which ones are yours.",
            f"{out} the odds of any conclusion about you {changes}, except with a probability of {chance(delta)}, "
            "even for somebody who knows the numbers of all others.",
            "If the shuffler tells which messages are yours, nothing protects your number.",
            "That you take part is not hidden.",
        ),
        anonymity=tuple(
            Anonymity(key=key, question=question, sentence=sentence, bound=None)
            for key, question, sentence in _QUESTIONS
        ),
        unprotected=(
            "What is true of the people as a whole: to publish it is the purpose.",
            "That somebody takes part, when, and from which address: the traffic of this collection was not analysed.",
            "Other collections about the same people: their epsilons add up with this one.",
            "The sum, against people who lie: a single one moves it to any that people could have.",
        ),
        facts=(
            *((("Answers for it", said.author),) if said.author else ()),
            ("Date", f"{today()}, by hushuffle {__version__}"),
            ("Specification, SHA-256", digest(specification.effective())),
        ),
        responsible=responsible(said),
    )


def _threats(specification: SumSpecification, protocol: SplitAndMix) -> Iterator[str]:
    said = specification.statement
    reader = f"Whoever reads the messages ({said.analyst})" if said.analyst else "Whoever reads the messages"
    who = f"The shuffler, run by {said.shuffler}," if said.shuffler else "The shuffler (say who runs it)"
    yield f"{reader} is not trusted: the claim holds even for somebody who knows all other numbers."
    yield f"{who} is trusted to hide who sent what. If it does not, nothing protects."
    others = protocol.n - protocol.needed
    if others:
        yield f"So many people may be absent, dishonest or work with the reader, in all: {others:,}."


def _assumptions(specification: SumSpecification, protocol: SplitAndMix) -> Iterator[tuple[str, str]]:
    times = specification.times
    again = f"Nobody is asked the same more than {times:,} times." if times > 1 else "Nobody is asked the same again."
    yield "one_answer", f"Everybody gives one number{' a round' if times > 1 else ''}. Of more, more is learned."
    yield "no_repeats", f"{again} What more sums cost is in the table of several sums."
    yield "participation", "That somebody takes part is no secret, and who answers does not depend on the numbers."
    yield "devices", "Devices run the mechanism as it is described, with random numbers that nobody can guess."
    yield "honest", f"Of {protocol.n:,} people {protocol.needed:,} answer, are honest and do not work with the reader."
    yield "shuffler", "The shuffler does not tell who sent what, and does not work with those who read the messages."
    yield "withheld", "The shuffler passes nothing on if too few honest people answer."


def cases(specification: SumSpecification, protocol: SplitAndMix, central: Bound) -> Table:
    """Return what the figures become if something is otherwise."""
    planned = protocol.standard_error() / protocol.n
    times, delta = specification.times, specification.delta
    rounds = f" of all {times:,} rounds" if times > 1 else ""
    rows: list[tuple[str, Bound | str, float | str]] = [("As planned", central, planned)]
    spare = protocol.n - protocol.needed
    if spare:
        least = protocol.standard_error(protocol.needed) / protocol.needed
        rows.append((f"{spare:,} people do not answer, all others are honest", central, least))
        rows.append((f"{spare:,} people who answer work with the reader", central, planned))
    rows.append((f"{spare + 1:,} people do not answer, or work with the reader", "no guarantee", "none: withheld"))
    rows.append(("The shuffler is broken or dishonest", dp.local_epsilon(protocol), planned))
    return Table(
        key="cases",
        title="What if",
        caption=f"Central epsilon{rounds} at delta = {delta:g}, and the standard error of the mean.",
        columns=("case", "epsilon, proven", "standard error"),
        rows=tuple(rows),
    )
