"""One finding per adversary: the figure, and one plain sentence that says it; or why there is none."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, TypeVar

from hushuffle.curves.divergence import divergence
from hushuffle.errors import NumericalError, UnsupportedProtocolError
from hushuffle.mechanisms.adversaries import Guesser
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.model import Bound, Finding, Unanswered, number
from hushuffle.model.bound import percent
from hushuffle.questions import dp, pie, qif

RELEASE: Final = "Anyone who sees the release"
SHUFFLER: Final = "A broken or dishonest shuffler"
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
    questions: Questions, protocol: Protocol, *, guessers: Iterable[Guesser], linking: bool, delta: float
) -> tuple[Finding, ...]:
    """Return a finding for each adversary, as far as there is an answer."""
    rows = [
        questions.ask("central-dp", RELEASE, lambda: central(protocol, delta=delta)),
        questions.ask("local-dp", SHUFFLER, lambda: local(protocol)),
    ]
    for adversary in guessers:
        row = partial(guesser, protocol, adversary)
        rows.append(questions.ask("vulnerability", adversary.phrase, row))
    if linking:
        rows.append(questions.ask("re-identification", LINKER, lambda: identified(protocol)))
        rows.append(questions.ask("identity-information", LINKER, lambda: identity_information(protocol)))
    return tuple(row for row in rows if row is not None)


def central(protocol: Protocol, *, delta: float) -> Finding:
    """Return the guarantee against somebody who knows everyone else's answer and sees the release."""
    curve = divergence(protocol)
    bound = curve.epsilon(delta)
    if math.isinf(bound.upper):
        sentence = "No differential privacy: somebody who knows everyone else's answer reads yours off the release."
    else:
        factor = number(math.exp(bound.upper), up=True)
        sentence = (
            f"Whatever they know, nothing they conclude is more than {factor} times as likely as if you had "
            f"answered otherwise (plus delta = {delta:g})."
        )
    return Finding(
        question="central-dp",
        adversary=RELEASE,
        sentence=sentence,
        bound=bound,
        proof=curve.proof,
    )


def local(protocol: Protocol) -> Finding:
    """Return the guarantee that is left if the shuffler is broken or colludes."""
    bound = dp.local_epsilon(protocol)
    if math.isinf(bound.upper):
        sentence = "Your answer is in the report as it is: if the shuffler fails, nothing protects it."
    else:
        factor = number(math.exp(bound.upper), up=True)
        sentence = (
            f"Even with your name on your report, nothing concluded from it is more than {factor} times as likely "
            f"as if you had answered otherwise."
        )
    return Finding(
        question="local-dp",
        adversary=SHUFFLER,
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
    sentence = (
        f"Guesses your answer right at most {percent(bound.upper, up=True)} of the time; {before} without the release."
    )
    return Finding(question="vulnerability", adversary=adversary.phrase, sentence=sentence, bound=bound, proof=proof)


def identified(protocol: Protocol) -> Finding:
    """Return how often one report names its sender."""
    error, blind = pie.bayes_error(protocol), 1 / protocol.n
    best = percent(1 - error.lower, up=True)
    return Finding(
        question="re-identification",
        adversary=LINKER,
        sentence=(
            f"Names the right person for one report at most {best} of the time, "
            f"even if answers were as telling as can be; {percent(blind)} by blind guessing."
        ),
        bound=error,
        proof=(
            "exact Bayes error (the figure), attained by the most telling link between persons and answers"
            if error.kind == "exact"
            else "bound from the Bayes capacity of one report: no link between persons and answers does better"
        ),
    )


def identity_information(protocol: Protocol) -> Finding:
    """Return how many bits one report says about who sent it."""
    leak, published = pie.alpha(protocol), pie.published_alpha(protocol)
    return Finding(
        question="identity-information",
        adversary=LINKER,
        sentence=(
            f"Learns at most {number(leak.upper, up=True)} bits about who sent a report; "
            f"{number(math.log2(protocol.n))} bits name one person."
        ),
        bound=leak,
        proof=(
            f"{'exact capacity' if leak.kind == 'exact' else 'upper bound on the capacity of one report'}; "
            f"the published bound is {number(published.upper, up=True)} bits"
        ),
    )


def central_bound(findings: Iterable[Finding]) -> Bound | None:
    """Return the figure of the central guarantee, if there is one."""
    return next((finding.bound for finding in findings if finding.question == "central-dp"), None)


def hides_senders(protocol: Protocol) -> bool:
    """Return whether the release hides who sent what at all."""
    return protocol.shuffler.reveals is not Reveals.SENDERS
