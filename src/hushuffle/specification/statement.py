"""`[statement]`: who runs each part, and who vouches for the assumptions that no proof covers."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hushuffle.specification._base import Name, Section


class Vouched(Section):
    """Who vouches for each assumption, and how: "the works council, by the roster of March"."""

    one_answer: Name | None = None
    """Each person answers at most once in a round."""
    no_repeats: Name | None = None
    """The same people are not asked the same again, beyond the rounds that are accounted for."""
    participation: Name | None = None
    """Participation is not secret, and a missing answer reveals nothing."""
    devices: Name | None = None
    """Devices run the mechanism as described, with cryptographically secure randomness."""
    shuffler: Name | None = None
    """The shuffler does not reveal who sent what, and does not collude with the analyst."""


class Responsible(Section):
    """Who is responsible for the deployment, and its legal facts for a data protection officer."""

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
    approved_on: Name | None = None
    """The date of the approval."""


class StatementSection(Responsible):
    """Words for the first page of the report."""

    author: Name | None = None
    """Who answers for the deployment."""
    shuffler: Name | None = None
    """Who runs the shuffler."""
    analyst: Name | None = None
    """Who the analyst is: the recipient of the release."""
    colluders: Annotated[int, Field(ge=1, le=10**15)] | None = None
    """Number of participants that collude with the analyst or are Sybil clients; 1 % of n if left out."""
    vouched: Vouched = Vouched()
    """Who vouches for each assumption, and how."""
