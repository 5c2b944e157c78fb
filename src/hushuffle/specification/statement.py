"""`[statement]`: who runs each part, and who vouches for the assumptions that no proof covers."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, Field

from hushuffle.specification._base import Name, Section, refuse

_PLACEHOLDERS: Final = (
    *("", "no", "none", "na", "null", "nobody", "noone", "notyet", "notconfirmed", "notyetconfirmed", "unconfirmed"),
    *("unknown", "tbd", "tbc", "tba", "todo", "pending", "open", "unclear", "later"),
)
"""Entries that name neither a person nor a document, as their letters alone in small letters."""


def _vouching(value: str) -> str:
    if "".join(filter(str.isalpha, value.casefold())) in _PLACEHOLDERS:
        refuse(
            "must name who confirms the assumption: a person, a role or a document",
            "Leave the key out until someone confirms it.",
        )
    return value


def _as_text(value: Any) -> Any:
    return value.isoformat() if type(value) is date else value


Voucher = Annotated[Name, AfterValidator(_vouching)]
"""The name of a person, a role or a document that confirms an assumption, never a placeholder such as "TBD"."""


class Vouched(Section):
    """Who vouches for each assumption, and how: "the works council, by the roster of March"."""

    one_answer: Voucher | None = None
    """Each person answers at most once in a round."""
    no_repeats: Voucher | None = None
    """The same people are not asked the same again, beyond the rounds that are accounted for."""
    participation: Voucher | None = None
    """Participation is not secret, and a missing answer reveals nothing."""
    devices: Voucher | None = None
    """Devices run the mechanism as described, with cryptographically secure randomness."""
    shuffler: Voucher | None = None
    """The shuffler does not reveal who sent what, and does not collude with the analyst."""


class Responsible(Section):
    """Who is responsible for the deployment and runs its parts, and the legal facts for a data protection officer."""

    controller: Name | None = None
    """The organisation that decides what is asked and why (the controller)."""
    purpose: Name | None = None
    """What the answers are used for."""
    legal_basis: Name | None = None
    """The legal basis: "consent, Art. 6 (1) (a) GDPR"."""
    retention: Name | None = None
    """How long reports and releases are kept."""
    contact: Name | None = None
    """Where people send questions and objections."""
    impact_assessment: Name | None = None
    """The reference of the data protection impact assessment."""
    approved_by: Name | None = None
    """Who approved the deployment."""
    approved_on: Annotated[Name, BeforeValidator(_as_text)] | None = None
    """The date of the approval: 2025-01-02, or text."""
    author: Name | None = None
    """Who answers for the deployment."""
    shuffler: Name | None = None
    """Who runs the shuffler."""
    analyst: Name | None = None
    """Who the analyst is: the recipient of the release."""


class StatementSection(Responsible):
    """Texts of the operator for the first page of the report."""

    colluders: Annotated[int, Field(ge=1, le=10**15)] | None = None
    """Number of participants that collude with the analyst or are Sybil clients; 1 % of n if left out."""
    vouched: Vouched = Vouched()
    """Who vouches for each assumption, and how."""
