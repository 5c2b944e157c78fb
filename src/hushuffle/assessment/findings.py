"""One finding per adversary: the figure, and one plain sentence that says it."""

from __future__ import annotations

import math

from hushuffle.assessment.bounded_guess import bounded_vulnerability
from hushuffle.curves.divergence import divergence
from hushuffle.mechanisms.adversaries import Guesser, Informed, Strong, Uninformed
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import HasSymmetricLaw, has
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.model import Bound, Finding, number
from hushuffle.model.bound import percent
from hushuffle.questions import dp, pie, qif


def central(protocol: Protocol, *, delta: float) -> Finding:
    """Return the guarantee against somebody who knows everyone else's answer and sees the release."""
    bound = dp.epsilon(protocol, delta=delta)
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
        adversary="Anyone who sees the release",
        sentence=sentence,
        bound=bound,
        proof=divergence(protocol).proof,
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
        adversary="A broken or dishonest shuffler",
        sentence=sentence,
        bound=bound,
        proof="integer threshold of the implemented randomizer, rounded up",
    )


def guesser(protocol: Protocol, adversary: Guesser, *, central: Bound, delta: float) -> Finding:
    """Return how often one guesser guesses the target's answer right; `central` is the epsilon at `delta`.

    Exact, or between certified ends, for a randomizer that treats all values alike. For others an upper bound that is
    the same for every guesser.
    """
    if has(protocol.randomizer, HasSymmetricLaw):
        bound = qif.vulnerability(protocol, adversary=adversary)
        proof = "expected success of the best guess (Bayes vulnerability), target's answer uniform beforehand"
    else:
        bound = bounded_vulnerability(protocol, epsilon=central.upper, delta=delta)
        proof = (
            "upper bound for every guesser, target's answer uniform beforehand: from the central guarantee, or from "
            "one report seen with its sender"
        )
    before = percent(qif.prior(protocol).upper)
    sentence = (
        f"Guesses your answer right at most {percent(bound.upper, up=True)} of the time; {before} without the release."
    )
    return Finding(question="vulnerability", adversary=_name(adversary), sentence=sentence, bound=bound, proof=proof)


def linker(protocol: Protocol) -> list[Finding]:
    """Return what one report says about who sent it."""
    error, leak = pie.bayes_error(protocol), pie.alpha(protocol)
    published = number(pie.published_alpha(protocol).upper, up=True)
    blind = 1 / protocol.n
    best = percent(1 - error.lower, up=True)
    return [
        Finding(
            question="re-identification",
            adversary="Somebody who wants to know whose report it is",
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
        ),
        Finding(
            question="identity-information",
            adversary="Somebody who wants to know whose report it is",
            sentence=(
                f"Learns at most {number(leak.upper, up=True)} bits about who sent a report; "
                f"{number(math.log2(protocol.n))} bits name one person."
            ),
            bound=leak,
            proof=(
                f"{'exact capacity' if leak.kind == 'exact' else 'upper bound on the capacity of one report'}; "
                f"the published bound is {published} bits"
            ),
        ),
    ]


def _name(adversary: Guesser) -> str:
    match adversary:
        case Uninformed():
            return "Somebody who knows nobody's answer"
        case Strong():
            return "Somebody who knows everyone else's answer"
        case Informed(m=m):
            return f"Somebody who knows the answers of {m:,} others"


def hides_senders(protocol: Protocol) -> bool:
    """Return whether the release hides who sent what at all."""
    return protocol.shuffler.reveals is not Reveals.SENDERS
