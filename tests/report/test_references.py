from __future__ import annotations

from dataclasses import replace

from hushuffle.model import Citation
from hushuffle.model.citation import FAIR, QIF
from hushuffle.report.page import _Mention as Mention
from hushuffle.report.page import _mentions as mentions
from hushuffle.report.page import _references as references
from report.assessments import OWN, assessment


def test_each_work_once_in_order_of_use_with_its_places() -> None:
    made = assessment()
    found = references(made.sources)
    assert [one.number for one in found] == list(range(1, len(found) + 1))
    assert len({one.text for one in found}) == len(found)
    places = {one.text: one.places for one in found}
    assert places[OWN.text] == ("docs/theory/order.md, Theorem 1", "section 1.4")
    assert places[QIF.text] == ("Proposition 2", "Theorem 4")
    assert places[FAIR.text] == ()


def test_mentions_point_at_the_work_and_say_the_place() -> None:
    made = assessment()
    number = {one.text: one.number for one in references(made.sources)}
    sources = (OWN.at("section 1.2"), OWN.at("section 1.2"), QIF.at("Theorem 4"))
    assert mentions(made.sources, sources) == (
        Mention(number=number[OWN.text], where="section 1.2"),
        Mention(number=number[QIF.text], where="Theorem 4"),
    )


def test_the_same_key_with_another_text_is_another_work() -> None:
    first, second = Citation(key="a", text="One"), Citation(key="a", text="Two")
    made = replace(assessment(), findings=(), citations=(first, second))
    assert [one.text for one in references(made.sources)] == ["One", "Two"]


def test_no_sources_no_references() -> None:
    assert references(replace(assessment(), findings=(), citations=()).sources) == ()
