"""One finding per adversary: the figure, and one plain sentence that says it; or why there is none."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar

import numpy as np

from hushuffle.assessment.exposure import ONCE, Exposure
from hushuffle.assessment.odds import factor
from hushuffle.errors import NumericalError, UnsupportedProtocolError
from hushuffle.mechanisms.adversaries import Guesser
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import MatrixRandomizer
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.model import Bound, Certificate, Finding, Unanswered, number
from hushuffle.model.bound import percent
from hushuffle.questions import pie, qif
from hushuffle.questions.dp.certificate import certified
from hushuffle.questions.qif.guessing import guarantee_vulnerability

RELEASE: Final = "Anyone who sees the release"
ONE_RELEASE: Final = "Anyone who sees the release of one round"
SHUFFLER: Final = "A broken or dishonest shuffler"
SERVERS: Final = "All servers, working together"
GUESSER: Final = "Somebody who guesses, whatever they know of others"
LINKER: Final = "Somebody who wants to know whose report it is"

Answer = TypeVar("Answer")


class Questions:
    """Asks one question of a report after another; one that is refused becomes a row that says why.

    >>> questions = Questions()
    >>> questions.ask("half", "Somebody who divides", lambda: 1 / 2)
    0.5
    >>> def refuse():
    ...     raise UnsupportedProtocolError("There is no law.")
    >>> questions.ask("third", "Somebody who divides", refuse)
    >>> questions.unanswered
    [Unanswered(question='third', topic='Somebody who divides', reason='There is no law.')]
    """

    def __init__(self) -> None:
        self.unanswered: list[Unanswered] = []

    def ask(self, question: str, topic: str, answer: Callable[[], Answer]) -> Answer | None:
        """Return what `answer` returns, or None if the mechanism, or the precision of numbers, does not allow it."""
        try:
            return answer()
        except (UnsupportedProtocolError, NumericalError) as refusal:
            self.unanswered.append(Unanswered(question=question, topic=topic, reason=str(refusal)))
            return None


def learned(
    questions: Questions,
    protocol: Protocol,
    *,
    guessers: Sequence[Guesser],
    linking: bool,
    delta: float,
    exposure: Exposure = ONCE,
) -> tuple[Finding, ...]:
    """Return a finding for each adversary, as far as there is an answer.

    All of them are for all that one person gives; what is known for one report alone is not answered then.
    """
    rows = [
        questions.ask("central-dp", RELEASE, lambda: central(protocol, delta=delta, exposure=exposure)),
        questions.ask("local-dp", SHUFFLER, lambda: local(protocol, exposure=exposure)),
    ]
    if exposure.rounds > 1 and not exposure.memoised:
        once = replace(exposure, rounds=1)
        single = questions.ask(
            "central-dp-one-round", ONE_RELEASE, lambda: central(protocol, delta=delta, exposure=once)
        )
        if single is not None:
            rows.insert(1, replace(single, question="central-dp-one-round", adversary=ONE_RELEASE))
    if exposure.total > 1 and guessers:
        one = "your answer" if exposure.memoised and exposure.changes == 0 else "one of your answers"
        composed = partial(guessed, protocol, central=rows[0], delta=delta, what=one, source=exposure.words)
        rows.append(questions.ask("vulnerability", GUESSER, composed))
    else:
        rows += [questions.ask("vulnerability", who.phrase, partial(guesser, protocol, who)) for who in guessers]
    if linking:
        rows.append(questions.ask("re-identification", LINKER, lambda: identified(_linked(protocol, exposure))))
        if exposure.total == 1:
            rows.append(questions.ask("identity-information", LINKER, lambda: identity_information(protocol)))
    return tuple(row for row in rows if row is not None)


def _linked(protocol: Protocol, exposure: Exposure) -> Protocol:
    """Return the protocol; whose report it is has no answer yet where a person gives several different ones."""
    if exposure.total > 1:
        message = f"Who sent a report is analysed for one report of each person; here it is {exposure.words}."
        raise UnsupportedProtocolError(message)
    return protocol


def central(protocol: Protocol, *, delta: float, exposure: Exposure = ONCE) -> Finding:
    """Return the guarantee against somebody who knows everyone else's answer and sees the release."""
    bound, proof = exposure.guarantee(protocol, delta=delta)
    telling = _telling(protocol, delta) if math.isinf(bound.upper) and _bare(protocol) else ""
    if telling:
        sentence = f"No differential privacy: epsilon is infinite, because {telling}."
    elif math.isinf(bound.upper):
        sentence = "No differential privacy: somebody who knows everyone else's answer reads yours off the release."
    elif times := factor(bound.upper):
        sentence = (
            f"Whatever else they know, seeing {exposure.seen} changes the odds of any conclusion about you by at most "
            f"{times} (delta = {delta:g})."
        )
    else:
        sentence = f"Your answers are practically readable for somebody who sees {exposure.seen.rstrip(',')}."
    return Finding(
        question="central-dp",
        adversary=RELEASE,
        sentence=sentence,
        bound=bound,
        shown=Bound.exact(math.inf, unit="nats") if telling else None,
        proof=proof,
        certificate=_certificate(protocol, bound, delta) if exposure.alone else None,
    )


def _bare(protocol: Protocol) -> bool:
    """Return whether the release is the reports of the people and nothing in addition."""
    shuffler = protocol.shuffler
    if shuffler.dummy_law is not None or shuffler.value_law is not None or shuffler.own_messages or shuffler.dummies:
        return False
    return protocol.reveals in (Reveals.MULTISET, Reveals.SENDERS)


def _telling(protocol: Protocol, delta: float) -> str:
    """Return which answer can send a report, more often than delta, that another answer cannot send; "": none.

    Of an own matrix; answers and reports are counted from 1.
    """
    if not isinstance(protocol.randomizer, MatrixRandomizer):
        return ""
    matrix = protocol.randomizer.channel().matrix
    shares = np.where((matrix == 0).any(axis=0), matrix, 0.0)
    answer, report = np.unravel_index(int(shares.argmax()), shares.shape)
    if not shares[answer, report] > delta:
        return ""
    if np.count_nonzero(matrix[:, report]) == 1:
        return f"only answer {answer + 1} can send report {report + 1}"
    never = int(np.flatnonzero(matrix[:, report] == 0)[0])
    return f"answer {answer + 1} can send report {report + 1} and answer {never + 1} cannot"


def _certificate(protocol: Protocol, bound: Bound, delta: float) -> Certificate | None:
    """Return what it takes to check a bracket, if a certificate is written for such a protocol."""
    try:
        return certified(protocol, bound, delta=delta)
    except UnsupportedProtocolError:
        return None


def local(protocol: Protocol, *, exposure: Exposure = ONCE) -> Finding:
    """Return the guarantee that is left if the shuffler is broken or colludes."""
    bound, sums = exposure.local(protocol), protocol.shuffler.reveals is Reveals.SUMS
    if math.isinf(bound.upper):
        broken = "all servers work together" if sums else "the shuffler fails"
        telling = _telling(protocol, 0.0)
        why = f"Epsilon is infinite, because {telling}" if telling else "Your answer is in the report as it is"
        sentence = f"{why}: if {broken}, nothing protects it."
    elif times := factor(bound.upper):
        sentence = f"{exposure.named} the odds of any conclusion about you by at most {times}."
    else:
        broken = "all servers work together" if sums else "the shuffler fails"
        sentence = f"If {broken}, your answers are practically readable."
    return Finding(
        question="local-dp",
        adversary=SERVERS if sums else SHUFFLER,
        sentence=sentence,
        bound=bound,
        proof="integer threshold of the implemented randomizer, rounded up",
    )


def guesser(protocol: Protocol, adversary: Guesser) -> Finding:
    """Return how often one guesser guesses the target's answer right: exact, between certified ends, or a bound."""
    bound = qif.vulnerability(protocol, adversary=adversary)
    proof = (
        "upper bound for every guesser, target's answer uniform beforehand: from one report seen with its sender, or "
        "from what all answers' reports have in common"
        if bound.kind == "upper"
        else "expected success of the best guess (Bayes vulnerability), target's answer uniform beforehand"
    )
    before = percent(qif.prior(protocol).upper)
    sentence = f"Guesses your answer right {_often(bound)} of the time; {before} without the release."
    return Finding(question="vulnerability", adversary=adversary.phrase, sentence=sentence, bound=bound, proof=proof)


def guessed(protocol: Protocol, *, central: Finding | None, delta: float, what: str, source: str) -> Finding:
    """Return how often any guesser guesses `what` right from all of `source`: a bound from the central guarantee."""
    if central is None:
        message = "It follows from the central epsilon of all reports together, which has no figure here."
        raise UnsupportedProtocolError(message)
    bound = guarantee_vulnerability(protocol.randomizer.inputs, epsilon=central.bound.upper, delta=delta)
    before = percent(qif.prior(protocol).upper)
    return Finding(
        question="vulnerability",
        adversary=GUESSER,
        sentence=f"Guesses {what} right {_often(bound)} of the time from {source}; {before} without a release.",
        bound=bound,
        proof="from central epsilon and delta of all of them together, the answer uniform beforehand",
    )


def identified(protocol: Protocol) -> Finding:
    """Return how often one report names its sender."""
    honest = protocol.secret
    error, blind = pie.bayes_error(protocol), 1 / honest.n
    among = "" if honest is protocol else " among honest people"
    right = error.complement
    return Finding(
        question="re-identification",
        adversary=LINKER,
        sentence=(
            f"Names the sender of a report correctly {_worst(percent, right)} of the time, even if each answer told as "
            f"much as can be about its owner; {percent(blind)} by blind guessing{among}."
        ),
        bound=error,
        shown=right,
        proof=(
            "one minus the exact Bayes error, attained by the most telling link between persons and answers"
            if error.kind == "exact"
            else "from the Bayes capacity of one report: no link between persons and answers does better"
        ),
    )


def identity_information(protocol: Protocol) -> Finding:
    """Return how many bits one report says about who sent it."""
    honest = protocol.secret
    if honest is not protocol and honest.n == 1:
        message = "One person alone is honest: whoever works with all others knows which report is theirs."
        raise UnsupportedProtocolError(message)
    leak, published = pie.alpha(protocol), pie.published_alpha(protocol)
    who = "who" if honest is protocol else f"which of {honest.n:,} honest people"
    return Finding(
        question="identity-information",
        adversary=LINKER,
        sentence=(
            f"Learns {_worst(number, leak)} bits about {who} sent a report; "
            f"{number(math.log2(honest.n))} bits name one person."
        ),
        bound=leak,
        proof=(
            f"{'exact capacity' if leak.kind == 'exact' else 'upper bound on the capacity of one report'}; "
            f"the published bound is {number(published.upper, up=True)} bits"
        ),
    )


def _often(bound: Bound) -> str:
    """Return a probability as a percentage that agrees with how the figure itself is shown."""
    return percent(bound.upper) if bound.kind == "exact" else f"at most {percent(bound.upper, up=True)}"


def _worst(written: Callable[..., str], bound: Bound) -> str:
    """Return what the worst population allows, `written` as the figure beside it is rounded."""
    exact = bound.kind == "exact"
    return f"up to {written(bound.upper)}" if exact else f"at most {written(bound.upper, up=True)}"


def central_bound(findings: Iterable[Finding]) -> Bound | None:
    """Return the figure of the central guarantee, if there is one."""
    return next((finding.bound for finding in findings if finding.question == "central-dp"), None)


def hides_senders(protocol: Protocol) -> bool:
    """Return whether the release hides who sent what at all."""
    return protocol.shuffler.reveals is not Reveals.SENDERS
