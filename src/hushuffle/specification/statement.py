"""`[statement]`: who runs what, and who vouches for what no mathematics shows."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hushuffle.specification._base import Name, Section


class Vouched(Section):
    """Who vouches for each assumption, and how: "the works council, by the roster of March"."""

    one_answer: Name | None = None
    """Everybody answers at most once in a round."""
    no_repeats: Name | None = None
    """The same people are not asked the same again, beyond the rounds that are accounted for."""
    participation: Name | None = None
    """That somebody takes part, or does not, is no secret, and missing answers are no hidden answers."""
    devices: Name | None = None
    """Devices run the mechanism as it is described, with good coins."""
    shuffler: Name | None = None
    """The shuffler does not tell who sent what, and does not work with those who read the release."""


class Responsible(Section):
    """Who is responsible, and for what: what a data protection officer asks first."""

    controller: Name | None = None
    """The organisation that decides what is asked and why (the controller)."""
    purpose: Name | None = None
    """What the answers are used for."""
    legal_basis: Name | None = None
    """On which legal basis: "consent, Art. 6 (1) (a) GDPR"."""
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
    """Who reads the release."""
    colluders: Annotated[int, Field(ge=1, le=10**15)] | None = None
    """How many people may tell their own reports to whoever reads the release, or be fake; 1 % if left out."""
    vouched: Vouched = Vouched()
    """Who vouches for each assumption, and how."""
