"""Compute one finding per adversary: a figure and one sentence, or the reason why there is no figure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, TypeVar

import numpy as np

from hushuffle._checks import unsupported
from hushuffle.errors import NumericalError, UnsupportedProtocolError
from hushuffle.mechanisms.adversaries import Guesser
from hushuffle.mechanisms.mixed_protocol import MixedProtocol
from hushuffle.mechanisms.protocol import Protocol
from hushuffle.mechanisms.randomizers import MatrixRandomizer
from hushuffle.mechanisms.shufflers import Reveals
from hushuffle.model import Bound, Certificate, Finding, Table, Unanswered, number
from hushuffle.model.bound import percent
from hushuffle.questions import dp, pie, qif
from hushuffle.questions.dp.certificate import of_question
from hushuffle.questions.qif.guessing import guarantee_vulnerability
from hushuffle.specification.exposure import ONCE, Exposure, factor

RELEASE: Final = "Anyone who sees the release"
ONE_RELEASE: Final = "Anyone who sees the release of one round"
SHUFFLER: Final = "A compromised shuffler"
SERVERS: Final = "All servers, colluding"
GUESSER: Final = "An adversary with any knowledge of other answers"
TESTER: Final = "An adversary who tests which of two answers is yours"
LINKER: Final = "An adversary who links a report to its sender"

_FALSE_POSITIVES: Final = 0.01
_POINTS: Final = 12
"""The number of computed points of the privacy curve, from which the rates of tests are interpolated."""

Answer = TypeVar("Answer")


class Questions:
    """Collects the answers to the questions of a report; a question without an answer becomes a row with the reason.

    >>> questions = Questions()
    >>> questions.ask("half", "An adversary who divides", lambda: 1 / 2)
    0.5
    >>> def refuse():
    ...     raise UnsupportedProtocolError("There is no figure.")
    >>> questions.ask("third", "An adversary who divides", refuse)
    >>> questions.unanswered
    [Unanswered(question='third', topic='An adversary who divides', reason='There is no figure.')]
    """

    def __init__(self) -> None:
        self.unanswered: list[Unanswered] = []

    def ask(self, question: str, topic: str, answer: Callable[[], Answer]) -> Answer | None:
        """None if the mechanism or numerical precision allows no answer."""
        try:
            return answer()
        except (UnsupportedProtocolError, NumericalError) as refusal:
            self.refuse({question: topic}, str(refusal))
            return None

    def refuse(self, topics: Mapping[str, str], reason: str) -> None:
        """Record for each question, with its topic, why it has no answer."""
        self.unanswered += [Unanswered(question=key, topic=topic, reason=reason) for key, topic in topics.items()]


def learned(
    questions: Questions,
    protocol: Protocol,
    *,
    guessers: Sequence[Guesser],
    linking: bool,
    delta: float,
    exposure: Exposure = ONCE,
) -> tuple[Finding, ...]:
    """A finding for each adversary; `questions` records the questions without an answer.

    Figures cover everything that one person sends. Questions about a single report have no answer if a person sends
    several reports.
    """
    rows = [
        questions.ask("central-dp", RELEASE, lambda: central(protocol, delta=delta, exposure=exposure)),
        questions.ask("local-dp", SHUFFLER, lambda: local(protocol, exposure=exposure)),
    ]
    once, key = exposure.one_round, "central-dp-one-round"
    if once is not None:
        single = questions.ask(key, ONE_RELEASE, lambda: central(protocol, delta=delta, exposure=once))
        if single is not None:
            rows.insert(1, replace(single, question=key, adversary=ONE_RELEASE))
    if exposure.total > 1 and guessers:
        source = exposure.words
        composed = partial(guessed, protocol, central=rows[0], delta=delta, what=exposure.answer, source=source)
        rows.append(questions.ask("vulnerability", GUESSER, composed))
    else:
        rows += [questions.ask("vulnerability", who.phrase, partial(guesser, protocol, who)) for who in guessers]
    if exposure.alone and rows[0] is not None and math.isfinite(rows[0].bound.upper):
        rows.append(questions.ask("membership-inference", TESTER, lambda: inferred(protocol, delta=delta)))
    if linking:
        rows.append(questions.ask("re-identification", LINKER, lambda: identified(protocol, exposure)))
        if exposure.total == 1:
            rows.append(questions.ask("identity-information", LINKER, lambda: identity_information(protocol)))
    return tuple(row for row in rows if row is not None)


def central(protocol: Protocol | MixedProtocol, *, delta: float, exposure: Exposure = ONCE) -> Finding:
    """The central guarantee, against a strong adversary that sees the release."""
    bound, proof = exposure.guarantee(protocol, delta=delta)
    shuffler = protocol.shuffler
    more = shuffler.dummy_law or shuffler.value_law or shuffler.own_messages or shuffler.dummies
    alone = not more and protocol.reveals in (Reveals.MULTISET, Reveals.SENDERS)  # the people's reports only
    telling = _telling(protocol, delta) if math.isinf(bound.upper) and alone else ""
    if telling:
        sentence = f"No differential privacy: epsilon is infinite, because {telling}."
    elif math.isinf(bound.upper):
        sentence = "No differential privacy: an adversary who knows all other answers reads yours from the release."
    elif times := factor(bound.upper):
        sentence = (
            f"Whatever else they know, seeing {exposure.seen} changes the odds of any conclusion about you by at most "
            f"{times} (delta = {delta:g})."
        )
    else:
        sentence = f"An adversary who sees {exposure.seen.rstrip(',')} can practically read your answers."
    return Finding(
        question="central-dp",
        adversary=RELEASE,
        sentence=sentence,
        bound=bound,
        shown=Bound.exact(math.inf, unit="nats") if telling else None,
        proof=proof,
        certificate=certified(lambda: of_question(exposure.question(protocol), bound, delta=delta)),
    )


def _telling(protocol: Protocol | MixedProtocol, delta: float) -> str:
    """A sentence on a report that one answer sends with probability > delta and another never sends, or "".

    It applies to a randomizer given as a matrix; answers and reports are counted from 1.
    """
    randomizer = protocol.parts[0][1]
    if not isinstance(randomizer, MatrixRandomizer):
        return ""
    matrix = randomizer.channel().matrix
    shares = np.where((matrix == 0).any(axis=0), matrix, 0.0)
    answer, report = np.unravel_index(int(shares.argmax()), shares.shape)
    if not shares[answer, report] > delta:
        return ""
    if np.count_nonzero(matrix[:, report]) == 1:
        return f"only answer {answer + 1} can lead to report {report + 1}"
    never = int(np.flatnonzero(matrix[:, report] == 0)[0])
    return f"answer {answer + 1} can lead to report {report + 1}, but answer {never + 1} cannot"


def certified(certificate: Callable[[], Certificate | None]) -> Certificate | None:
    """None if certificates do not support the release."""
    try:
        return certificate()
    except UnsupportedProtocolError:
        return None


def local(protocol: Protocol | MixedProtocol, *, exposure: Exposure = ONCE) -> Finding:
    """The local guarantee, which holds even if the shuffler is compromised or colludes."""
    bound, sums = exposure.local(protocol), protocol.shuffler.reveals is Reveals.SUMS
    if math.isinf(bound.upper):
        failure = "all servers collude" if sums else "the shuffler fails"
        telling = _telling(protocol, 0.0)
        why = f"Epsilon is infinite, because {telling}" if telling else "Your report contains no noise"
        sentence = f"{why}: if {failure}, nothing protects your answer."
    elif times := factor(bound.upper):
        sentence = f"{exposure.named} the odds of any conclusion about you by at most {times}."
    else:
        failure = "all servers collude" if sums else "the shuffler fails"
        sentence = f"If {failure}, your answers are practically readable."
    return Finding(
        question="local-dp",
        adversary=SERVERS if sums else SHUFFLER,
        sentence=sentence,
        bound=bound,
        proof="local epsilon of the program's randomizer, which compares random integers with a threshold; rounded up",
    )


def guesser(protocol: Protocol, adversary: Guesser, *, bound: Bound | None = None) -> Finding:
    """The probability that one adversary guesses the target's answer correctly, or a `bound` on it."""
    bound = bound or qif.vulnerability(protocol, adversary=adversary)
    proof = (
        "upper bound for any adversary with a uniform prior: the smaller of the one-report bound and the "
        "privacy-blanket bound"
        if bound.kind == "upper"
        else "Bayes vulnerability (expected success of the best guess), uniform prior on the target's answer"
    )
    before = percent(qif.prior(protocol).upper)
    sentence = f"The adversary guesses your answer right {_often(bound)} of the time; {before} without the release."
    return Finding(question="vulnerability", adversary=adversary.phrase, sentence=sentence, bound=bound, proof=proof)


def guessed(protocol: Protocol, *, central: Finding | None, delta: float, what: str, source: str) -> Finding:
    """Bounds the success of guessing `what` from `source` by the central guarantee."""
    if central is None:
        unsupported("The bound needs the central epsilon of all reports together, which could not be computed.")
    bound = guarantee_vulnerability(protocol.randomizer.inputs, epsilon=central.bound.upper, delta=delta)
    before = percent(qif.prior(protocol).upper)
    return Finding(
        question="vulnerability",
        adversary=GUESSER,
        sentence=f"The adversary guesses {what} right {_often(bound)} of the time from {source}; {before} a priori.",
        bound=bound,
        proof="bound from central epsilon and delta of all reports together, for a uniform prior on the answer",
    )


def inferred(protocol: Protocol, *, delta: float) -> Finding:
    """The advantage, the true-positive rate and mu of membership inference, against a strong adversary."""
    profile = dp.profile(protocol, points=_POINTS, least=min(delta, 0.1))
    rate, mu = profile.true_positive_rate(_FALSE_POSITIVES)[()], profile.gdp(min(delta, 0.1))
    return Finding(
        question="membership-inference",
        adversary=TESTER,
        sentence=(
            "The adversary knows all other answers. At a false-positive rate of "
            f"{percent(_FALSE_POSITIVES)}, its true-positive rate is {_often(rate)}. This row's figure is the "
            "advantage, the largest difference between the two rates. As Gaussian differential privacy: mu = "
            f"{number(mu.upper, up=True)}, up to an error of delta = {delta:g}."
        ),
        bound=profile.advantage,
        proof="trade-off function of the certified privacy curve",
    )


def identified(protocol: Protocol, exposure: Exposure = ONCE) -> Finding:
    """The probability that a re-identification adversary names the sender of one report, the only one of a person."""
    if exposure.total > 1:
        unsupported(f"Re-identification is analysed for one report per person; the release covers {exposure.words}.")
    honest = protocol.secret
    error, blind = pie.bayes_error(protocol), 1 / honest.n
    among = "" if honest is protocol else " among honest people"
    right = error.complement
    return Finding(
        question="re-identification",
        adversary=LINKER,
        sentence=(
            f"The adversary names the sender of a report correctly {_worst(percent, right)} of the time, "
            f"{percent(blind)} by blind guessing{among}. This holds for any relation between people and answers."
        ),
        bound=error,
        shown=right,
        proof=(
            "one minus the exact Bayes error, for the most identifying relation between people and answers"
            if error.kind == "exact"
            else "bound from the Bayes capacity of one report, for any relation between people and answers"
        ),
    )


def identity_information(protocol: Protocol) -> Finding:
    """The information (bits) that one report reveals about the identity of its sender."""
    honest = protocol.secret
    if honest is not protocol and honest.n == 1:
        unsupported("Only one person is honest: an adversary who colludes with all others knows this person's report.")
    leak, published = pie.alpha(protocol), pie.published_alpha(protocol)
    crowd = f"{honest.n:,} {'people' if honest is protocol else 'honest people'}"
    return Finding(
        question="identity-information",
        adversary=LINKER,
        sentence=(
            f"A report reveals {_worst(number, leak)} bits about its sender; identifying one of {crowd} takes "
            f"{number(math.log2(honest.n))} bits."
        ),
        bound=leak,
        proof=(
            f"{'exact capacity' if leak.kind == 'exact' else 'upper bound on the capacity of one report'}; "
            f"the published bound is {number(published.upper, up=True)} bits"
        ),
    )


def _often(bound: Bound) -> str:
    """A probability as a percentage, rounded in the same direction as the figure in the report."""
    return percent(bound.upper) if bound.kind == "exact" else f"at most {percent(bound.upper, up=True)}"


def _worst(written: Callable[..., str], bound: Bound) -> str:
    """The figure for the worst population, formatted by `written` and rounded as in the report."""
    exact = bound.kind == "exact"
    return f"up to {written(bound.upper)}" if exact else f"at most {written(bound.upper, up=True)}"


def central_bound(findings: Iterable[Finding]) -> Bound | None:
    return next((finding.bound for finding in findings if finding.question == "central-dp"), None)


WATCHER: Final = "An adversary who compares the releases of two rounds"
_AGAINST_FRESH: Final = "Memoized reports against fresh reports"


def kept_or_fresh(questions: Questions, protocol: Protocol, *, delta: float, exposure: Exposure) -> Iterator[Table]:
    """Yield epsilon over all rounds with memoized and with fresh reports, if reports are memoized."""
    if cases := exposure.compared_with_fresh(protocol.randomizer.inputs):
        yield _memoized_table(questions, protocol, cases, delta=delta)


def compared_reports(protocol: Protocol, *, delta: float, exposure: Exposure) -> tuple[Table, ...]:
    """Epsilon over all rounds with memoized and with fresh reports; () for a single round."""
    if exposure.rounds == 1 or exposure.reports > 1:
        return ()
    return (_memoized_table(Questions(), protocol, exposure.memoized(protocol.randomizer.inputs), delta=delta),)


def _memoized_table(questions: Questions, protocol: Protocol, memoized: Sequence[Exposure], *, delta: float) -> Table:
    def ask(case: Exposure) -> Bound | None:
        return questions.ask("memoised", _AGAINST_FRESH, lambda: case.epsilon(protocol, delta=delta))

    rounds = memoized[0].rounds
    cases = [(f"memoized, value {case.stays}", case) for case in memoized]
    cases.append(("fresh in every round, even if values change", Exposure(rounds=rounds)))
    return Table(
        key="memoised",
        title=f"{rounds:,} rounds: memoized reports and fresh reports",
        caption=(
            f"Epsilon of one person in all rounds together; central epsilon is at delta = {delta:g}. Each round is "
            f"shuffled by itself. Memoized reports hide only among the {protocol.n:,} people who take part in all "
            "rounds and keep their values. Only fresh reports hide whether and when a value changes. Values that never "
            "change are rare."
        ),
        columns=("reports", "central epsilon, all rounds", "local epsilon, all rounds"),
        rows=tuple((words, ask(case) or "not known", case.local(protocol)) for words, case in cases),
    )


def change(questions: Questions, protocol: Protocol, exposure: Exposure) -> tuple[Finding, ...]:
    """How likely an adversary detects that a value changed, from memoized reports; () for fresh reports."""
    bound = questions.ask("change-shows", WATCHER, lambda: exposure.change_shows(protocol))
    if bound is None:
        return ()
    often = percent(bound.upper)
    if bound.kind != "exact":
        often = f"between {percent(bound.lower, up=False)} and {percent(bound.upper, up=True)}"
    return (
        Finding(
            question="change-shows",
            adversary=WATCHER,
            sentence=(
                f"The adversary detects {often} of the time that your answer changed between the two rounds, if all "
                "other answers stay. If no answer changes, all rounds show the same reports."
            ),
            bound=bound,
            proof="probability that the old and the new report of one person differ, for the worst two values",
        ),
    )
