from __future__ import annotations

from dataclasses import replace

from hushuffle.model import Citation
from hushuffle.model.citation import FAIR, QIF
from hushuffle.report.page import mentions, references
from report.assessments import OWN, assessment


def test_each_work_once_in_order_of_use_with_its_places() -> None:
    places = {text: used for (_, text), used in references(assessment().sources).items()}
    assert places[OWN.text] == ["docs/theory/order.md, Theorem 1", "section 1.4"]
    assert places[QIF.text] == ["Proposition 2", "Theorem 4"]
    assert places[FAIR.text] == []


def test_mentions_point_at_the_work_and_say_the_place() -> None:
    made = assessment()
    number = {text: place for place, (_, text) in enumerate(references(made.sources), 1)}
    sources = (OWN.at("section 1.2"), OWN.at("section 1.2"), QIF.at("Theorem 4"))
    assert mentions(made.sources, sources) == [(number[OWN.text], "section 1.2"), (number[QIF.text], "Theorem 4")]


def test_the_same_key_with_another_text_is_another_work() -> None:
    first, second = Citation(key="a", text="One"), Citation(key="a", text="Two")
    made = replace(assessment(), findings=(), citations=(first, second))
    assert [text for _, text in references(made.sources)] == ["One", "Two"]


def test_no_sources_no_references() -> None:
    assert references(replace(assessment(), findings=(), citations=()).sources) == {}
