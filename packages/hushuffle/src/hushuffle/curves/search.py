"""Answer a question about a release by the first law that fits it, else by the first rule that makes it simpler."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Final, NoReturn

from hushuffle.curves.base import Envelope, PrivacyCurve
from hushuffle.curves.laws.blanket_messages import TrueAmongHashes, TrueAmongUniform
from hushuffle.curves.laws.finite_blanket import FiniteDivergence
from hushuffle.curves.laws.flipped_columns import FlippedColumns
from hushuffle.curves.laws.local import FiniteLocal, Local
from hushuffle.curves.laws.secure_sums import SecureSums
from hushuffle.curves.laws.shared_sums import SharedSums
from hushuffle.curves.laws.symmetric import Binary, Kary
from hushuffle.curves.laws.value_dummies import TrueAmongEach, ValueCounts
from hushuffle.curves.question import Feature, Law, Question, Rule
from hushuffle.curves.rules import RULES
from hushuffle.mechanisms.randomizers import Symmetric
from hushuffle.mechanisms.shufflers import NO_NOISE, LaplaceNoise, Trials

if TYPE_CHECKING:
    from hushuffle.mechanisms.mixed_protocol import MixedProtocol
    from hushuffle.mechanisms.protocol import Protocol
    from hushuffle.mechanisms.split_and_mix import SplitAndMix

_RARE: Final = Fraction(1, 10**7)
"""Flip probability below which the bound for flipped columns overflows, and the privacy blanket is used instead."""


def _truthful(question: Question) -> bool:
    law = question.law.symmetric
    return law is not None and law.lie == 0


def _own(question: Question) -> Trials:
    return next((source.trials for source in question.release.sources), Trials(number=0, p=1.0))


def _length(trials: Trials) -> int:
    """Length of the table from which the number of successes is drawn; 0 if the number is certain."""
    return trials.law.numbers.size if trials.law.random else 0


def _shares(question: Question) -> PrivacyCurve:
    assert question.release.shares is not None
    return SharedSums(protocol=question.release.shares)


def _uniform(question: Question) -> PrivacyCurve:
    own, k, n = _own(question), question.device.inputs, question.release.n
    return TrueAmongUniform.of(k=k, n=n, trials=own.number, p=own.p, numbers=_length(own))


def _each(question: Question) -> PrivacyCurve:
    (source,), keep, n = question.release.sources, question.release.keep, question.release.n
    own = ValueCounts.binomial(source.trials.number, source.trials.p) if source.from_people else None
    counts = ValueCounts.of(source.law, kept=keep)
    return TrueAmongEach.of(counts, k=question.device.inputs, n=n, kept=keep, ratio=source.law.endless, coins=own)


def _hashes(question: Question) -> PrivacyCurve:
    law, own, n = question.law, _own(question), question.release.n
    assert law.bucket is not None
    buckets, collision = law.bucket.k, law.collision
    return TrueAmongHashes.of(
        buckets=buckets, collision=collision, n=n, trials=own.number, p=own.p, numbers=_length(own)
    )


def _symmetric(question: Question) -> Symmetric:
    """One flipped bit is binary randomized response."""
    law = question.law
    if law.symmetric is not None:
        return law.symmetric
    assert law.flipped is not None
    return Symmetric(k=2, truth=1 - law.flipped.flip, lie=law.flipped.flip)


def _seen(question: Question) -> bool:
    """Whether a shuffle adds nothing to k-ary randomized response: senders are seen, or there is no noise at all."""
    law = question.law.symmetric
    if law is None:
        return False
    # Two probabilities that round to the same float: local and central epsilon are both 0 up to rounding.
    blind = float(law.truth) == float(law.lie)
    return Feature.SENDERS in question.features or (law.lie == 0 and question.release.dummies == 0) or blind


def _two_values(question: Question) -> bool:
    law = question.law
    return law.symmetric.k == 2 if law.symmetric is not None else law.flipped is not None and law.flipped.width == 1


def _local(question: Question) -> PrivacyCurve:
    return Local(law=_symmetric(question), local_epsilon=question.device.local_epsilon, n=question.release.n)


def _shuffled(question: Question) -> PrivacyCurve:
    law, pure, release = _symmetric(question), question.device.local_epsilon, question.release
    if law.k == 2:
        return Binary.of(law=law, local_epsilon=pure, n=release.n, dummies=release.dummies)
    general = FiniteDivergence.of(release)
    return Kary(law=law, local_epsilon=pure, n=release.n, dummies=release.dummies, general=general)


def _sums(question: Question) -> PrivacyCurve:
    law, release = question.law.one_hot, question.release
    assert law is not None
    counts = [source.count for source in release.sources]
    secret = sum(count.number for count in counts if isinstance(count, Trials))
    noise = next((count for count in counts if isinstance(count, LaplaceNoise)), NO_NOISE)
    return SecureSums.of(law, n=release.n, local_epsilon=question.device.local_epsilon, coins=secret, noise=noise)


LAWS: Final = (
    Law(
        name="shares of a sum",
        statement="The messages reveal no more than the noisy sum, up to a small statistical distance.",
        page="split-and-mix.md, Theorem 7",
        beside=frozenset({Feature.SHARES}),
        fits=lambda question: question.release.shares is not None,
        of=_shares,
        any_size=True,
    ),
    Law(
        name="true values among uniform messages",
        statement="Only the counts of the target's two values matter; other people's values do not.",
        page="histograms.md, Theorem 2",
        beside=frozenset({Feature.OWN}),
        fits=lambda question: Feature.OWN in question.features and _truthful(question),
        of=_uniform,
        any_size=True,
    ),
    Law(
        name="true values among messages of each value",
        statement="The counts of different values are independent, and only those of the target's two values matter.",
        page="histograms.md, Theorem 5",
        beside=frozenset({Feature.EACH, Feature.OWN, Feature.THINNED}),
        fits=lambda question: Feature.EACH in question.features and _truthful(question),
        of=_each,
        any_size=True,
    ),
    Law(
        name="true hash buckets among uniform messages",
        statement="A message supports one of the target's two values, or both; only such messages are counted.",
        page="histograms.md, Theorem 9",
        beside=frozenset({Feature.OWN}),
        fits=lambda question: question.law.bucket is not None and question.law.bucket.lie == 0,
        of=_hashes,
    ),
    Law(
        name="k-ary randomized response, seen",
        statement="The report is seen with its sender, or has no noise: its own divergence is the answer.",
        page="index.md",
        beside=frozenset({Feature.SENDERS}),
        fits=_seen,
        of=_local,
    ),
    Law(
        name="randomized response of two values, shuffled",
        statement="The number of ones is a sufficient statistic; all compositions of the other people are evaluated.",
        page="two-values.md, Theorem 1",
        fits=_two_values,
        of=_shuffled,
    ),
    Law(
        name="k-ary randomized response, shuffled",
        statement="The privacy blanket bounds epsilon from above, explicit neighbouring datasets from below.",
        page="blanket.md, Theorem 1",
        fits=lambda question: question.law.symmetric is not None,
        of=_shuffled,
    ),
    Law(
        name="one report seen",
        statement="The report is seen with its sender: the largest divergence of two values' reports is the answer.",
        page="index.md",
        beside=frozenset({Feature.SENDERS}),
        fits=lambda question: Feature.SENDERS in question.features,
        of=lambda question: FiniteLocal.of(question.release),
    ),
    Law(
        name="flipped bits",
        statement="Bits that agree in the target's two values do not matter; the other bits are counted together.",
        page="crowds.md",
        fits=lambda question: question.law.flipped is not None and question.law.flipped.flip >= _RARE,
        of=lambda question: FlippedColumns.of(question.release),
    ),
    Law(
        name="sums of one-hot reports",
        statement="Only the columns of the target's two values change, and the columns are independent.",
        page="secure-sums.md, Theorem 1",
        beside=frozenset({Feature.SUMS, Feature.EACH}),
        fits=lambda question: Feature.SUMS in question.features and question.law.one_hot is not None,
        of=_sums,
    ),
    Law(
        name="any finite randomizer",
        statement="Common reports of all values form a pool (or privacy blanket) that hides the target's report.",
        page="pool.md, Theorem 1",
        fits=lambda _: True,
        of=lambda question: FiniteDivergence.of(question.release),
    ),
)
"""Laws are tried in this order."""


def privacy_curve(protocol: Protocol | MixedProtocol | SplitAndMix, reports: int = 1) -> PrivacyCurve:
    """The privacy curve of a protocol with n reports if one person sends at most `reports` of them.

    Source: docs/theory/index.md.
    """
    return solve(Question.of(protocol, reports))


def trail(question: Question) -> str:
    """The rules and the law that answer a question, each with the page of its proof, in the order of use.

    >>> import hushuffle as hs
    >>> response = hs.RandomizedResponse(k=3, epsilon=1.0)
    >>> trail(Question.of(hs.Protocol(randomizer=response, shuffler=hs.UniformShuffle(), n=9), 2))
    'a batch for each report (composition.md, Theorem 8), k-ary randomized response, shuffled (blanket.md, Theorem 1)'
    """
    return ", ".join(dict.fromkeys(f"{step.name} ({step.page})" for step, _ in derivation(question)))


def derivation(question: Question) -> Iterator[tuple[Law | Rule, Question]]:
    """Yield each rule and law with the question that it answers, a rule before the questions to which it leads."""
    for step in steps(question):
        yield step, question
        for part in step.relation(question)[1]:
            yield from derivation(part)


def solve(question: Question) -> PrivacyCurve:
    """The curve of the first step, or the best bounds of partial steps."""
    first, *further = steps(question)
    if not further:
        return first.curve(question, solve)
    once = cache(solve)  # several theorems may lead to the same question
    best = [step.curve(question, once).envelope() for step in (first, *further)]
    above = {id(curve): curve for curve in chain.from_iterable(each.above for each in best)}
    below = {id(curve): curve for curve in chain.from_iterable(each.below for each in best)}
    slack = max(each.slack for each in best)
    return Envelope(above=tuple(above.values()), below=tuple(below.values()), slack=slack)


def steps(question: Question) -> tuple[Law | Rule, ...]:
    """The law that answers a question, or the rule that makes it simpler; several if these are partial."""
    every: tuple[Law | Rule, ...] = (*LAWS, *RULES)
    first = next((step for step in every if step.covers(question)), None) or _refuse(question)
    return tuple(step for step in every if step.partial and step.covers(question)) if first.partial else (first,)


def _refuse(question: Question) -> NoReturn:
    """Says which feature of the question no rule removes beside the others."""
    for rule in RULES:
        if rule.on <= question.features and rule.limits:
            question.refuse(rule.limits)
    words = ", ".join(sorted(feature.value for feature in question.features))
    question.refuse(f"There is no bound for {words} together.")
