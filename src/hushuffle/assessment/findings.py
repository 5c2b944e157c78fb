"""One finding per adversary: the figure, and one plain sentence that says it; or why there is none."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar

from hushuffle.assessment.exposure import ONCE, Exposure
from hushuffle.errors import NumericalError, UnsupportedProtocolError
from hushuffle.mechanisms.adversaries import Guesser
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.model import Bound, Certificate, Finding, Unanswered, number
from hushuffle.model.bound import percent
from hushuffle.questions import pie, qif
from hushuffle.questions.dp.certificate import certified

RELEASE: Final = "Anyone who sees the release"
ONE_RELEASE: Final = "Anyone who sees the release of one round"
SHUFFLER: Final = "A broken or dishonest shuffler"
SERVERS: Final = "All servers, working together"
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
    guessers: Iterable[Guesser],
    linking: bool,
    delta: float,
    exposure: Exposure = ONCE,
) -> tuple[Finding, ...]:
    """Return a finding for each adversary, as far as there is an answer.

    The first two are for all that one person gives; the others are about one report alone.
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
    for adversary in guessers:
        row = partial(guesser, protocol, adversary)
        rows.append(questions.ask("vulnerability", adversary.phrase, row))
    if linking:
        rows.append(questions.ask("re-identification", LINKER, lambda: identified(_of_people(protocol, exposure))))
        rows.append(
            questions.ask("identity-information", LINKER, lambda: identity_information(_of_people(protocol, exposure)))
        )
    return tuple(_of_one_report(row, exposure) for row in rows if row is not None)


def _of_one_report(row: Finding, exposure: Exposure) -> Finding:
    """Say what a figure about one report leaves out where a person gives several different ones."""
    if exposure.total == 1 or row.question in ("central-dp", "central-dp-one-round", "local-dp"):
        return row
    return replace(row, sentence=f"{row.sentence} That is one report alone: all of yours together may say more.")


def _of_people(protocol: Protocol, exposure: Exposure) -> Protocol:
    """Return the protocol, whose n must be the number of people who may have sent a report."""
    if exposure.reports > 1:
        message = "Who sent a report is analysed where each person gives one; here a person may give several."
        raise UnsupportedProtocolError(message)
    return protocol


def central(protocol: Protocol, *, delta: float, exposure: Exposure = ONCE) -> Finding:
    """Return the guarantee against somebody who knows everyone else's answer and sees the release."""
    bound, proof = exposure.guarantee(protocol, delta=delta)
    if math.isinf(bound.upper):
        sentence = "No differential privacy: somebody who knows everyone else's answer reads yours off the release."
    else:
        factor = number(math.exp(bound.upper), up=True)
        sentence = (
            f"Whatever else they know, seeing {exposure.seen} changes the odds of any conclusion about you by at most "
            f"a factor {factor} (delta = {delta:g})."
        )
    return Finding(
        question="central-dp",
        adversary=RELEASE,
        sentence=sentence,
        bound=bound,
        proof=proof,
        certificate=_certificate(protocol, bound, delta) if exposure.alone else None,
    )


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
        sentence = f"Your answer is in the report as it is: if {broken}, nothing protects it."
    else:
        factor = number(math.exp(bound.upper), up=True)
        sentence = f"{exposure.named} the odds of any conclusion about you by at most a factor {factor}."
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
