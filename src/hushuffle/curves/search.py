"""Find the rules and laws that answer a question: a law where one fits, else the first rule that applies."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from hushuffle.curves.base import PrivacyCurve
from hushuffle.curves.laws import LAWS
from hushuffle.curves.question import Law, Question, Rule
from hushuffle.curves.rules import RULES

if TYPE_CHECKING:
    from hushuffle.mechanisms.mixed_protocol import MixedProtocol
    from hushuffle.mechanisms.protocol import Protocol
    from hushuffle.mechanisms.split_and_mix import SplitAndMix


def privacy_curve(protocol: Protocol | MixedProtocol | SplitAndMix, reports: int = 1) -> PrivacyCurve:
    """Return the privacy curve of a protocol with n reports if one person sends at most `reports` of them.

    Raises:
        UnsupportedProtocolError: no rule and no law is known for this release.
        NumericalError: there are more reports than the accuracy is tested for.

    Source: docs/theory/index.md.
    """
    return solve(Question.of(protocol, reports))


def solve(question: Question) -> PrivacyCurve:
    """Return the privacy curve that answers a question."""
    return step(question).curve(question, solve)


def step(question: Question) -> Law | Rule:
    """Return the law that answers a question, or the rule that makes it simpler.

    Raises:
        UnsupportedProtocolError: there is neither.
    """
    features = question.features
    for law in LAWS:
        if features <= law.beside and law.fits(question):
            return law
    for rule in RULES:
        if rule.on <= features <= rule.on | rule.beside and rule.applies(question):
            return rule
    return _refuse(question)


def _refuse(question: Question) -> NoReturn:
    """Refuse a question: say which of its features no rule removes beside the others."""
    for rule in RULES:
        if rule.on <= question.features and rule.limits:
            question.refuse(rule.limits)
    words = ", ".join(sorted(feature.value for feature in question.features))
    question.refuse(f"There is no bound for {words} together.")
