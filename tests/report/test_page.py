from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import pytest

from hushuffle import report
from hushuffle.model import Report, Warned
from hushuffle.model.citation import Citation
from report.assessments import assessment, charts
from report.outline import outline

CASES = {
    "two values": assessment(2),
    "seven values": assessment(7, wrong=True, warnings=False, target=0.001),
    "many values": assessment(200),
    "no data": assessment(5, data=False, target=None),
    "no noise": assessment(3, data=False, noise=False),
    "long labels": assessment(3, names=("x" * 200, "日本語" * 50, "a label of many words " * 9)),
    "nothing asked": replace(assessment(2), findings=(), utility=None, charts=(), warnings=(), citations=()),
}
EVIL = "</title></style><script>alert('x')</script><img src=\"https://evil.example\" onerror=x>&amp;"


@cache
def page(case: str) -> str:
    return report.html(CASES[case])


@pytest.mark.parametrize("case", CASES)
def test_well_formed_and_described(case: str) -> None:
    found = outline(page(case))
    assert page(case).startswith("<!DOCTYPE html>\n")
    assert found.all("html")[0].attributes["lang"] == "en"
    assert found.text("title") == ["Affairs survey of 1974: privacy assessment"]
    assert len(found.all("h1")) == 1
    viewports = [one for one in found.all("meta") if one.attributes.get("name") == "viewport"]
    assert viewports[0].attributes["content"] == "width=device-width, initial-scale=1"


@pytest.mark.parametrize("case", CASES)
def test_ids_are_unique_and_references_lead_somewhere(case: str) -> None:
    found = outline(page(case))
    ids = [one.attributes["id"] for one in found.elements if "id" in one.attributes]
    assert len(set(ids)) == len(ids)
    wanted = set(re.findall(r"url\(#([^)]+)\)", page(case)))
    for one in found.elements:
        wanted |= {one.attributes[name] for name in ("aria-labelledby",) if name in one.attributes}
        wanted |= {one.attributes["href"].removeprefix("#")} if "href" in one.attributes else set()
    assert wanted <= set(ids)


@pytest.mark.parametrize("case", CASES)
def test_nothing_comes_from_elsewhere(case: str) -> None:
    text = page(case)
    assert not re.search(r"https?:|//[a-z]|@import|javascript:", text, re.IGNORECASE)
    found = outline(text)
    assert {one.tag for one in found.elements}.isdisjoint({"script", "link", "img", "iframe", "object", "use", "base"})
    assert all(one.attributes["href"].startswith("#") for one in found.elements if "href" in one.attributes)
    policy = [one.attributes["content"] for one in found.all("meta") if "http-equiv" in one.attributes]
    assert policy[0].startswith("default-src 'none'")


@pytest.mark.parametrize("case", CASES)
def test_small(case: str) -> None:
    assert len(page(case).encode()) < 300_000


@pytest.mark.parametrize("case", ["two values", "many values"])
def test_same_assessment_same_bytes(case: str) -> None:
    assert report.html(CASES[case]) == page(case)


def test_sections_stand_in_their_order() -> None:
    assert outline(page("two values")).text("h2") == [
        "What each adversary learns",
        "Warnings",
        "Utility, predicted and measured",
        "Charts",
        "How to read the figures",
        "Effective specification",
        "References",
    ]
    assert outline(page("nothing asked")).text("h2") == [
        "What each adversary learns",
        "Warnings",
        "How to read the figures",
        "Effective specification",
    ]


def test_the_deployment_comes_first() -> None:
    body = page("two values").split('<body class="assessment">')[1]
    assert body.index("Affairs survey of 1974") < body.index("6,366 people each answer") < body.index("<table")


def test_each_finding_is_a_row() -> None:
    made = CASES["two values"]
    found = outline(page("two values"))
    rows = [one for one in found.all("th") if one.attributes.get("scope") == "row"]
    assert [" ".join(one.text.split()) for one in rows[: len(made.findings)]] == [
        finding.adversary for finding in made.findings
    ]
    sentences = [one.text for one in found.all("td") if one.attributes.get("class") == "sentence"]
    assert [text.replace("\N{NO-BREAK SPACE}", " ") for text in sentences] == [
        finding.sentence for finding in made.findings
    ]
    kinds = [one.text for one in found.all("span") if one.attributes.get("class", "").startswith("kind ")]
    assert kinds == ["exact", "certified bracket", "exact", "upper bound", "lower bound", "95% interval", "upper bound"]
    assert "infinity" in page("no noise")


def test_rows_link_to_numbered_references() -> None:
    found = outline(page("two values"))
    assert "[2, docs/theory/order.md, Theorem 1]" in found.text("a")
    listed = [one.attributes["id"] for one in found.all("li") if "id" in one.attributes]
    assert listed == [f"reference-{number}" for number in range(1, len(listed) + 1)]


def test_warnings_or_their_absence() -> None:
    assert "whoever knows it can undo" in page("two values")
    assert "No warnings." not in page("two values")
    assert "No warnings." in page("seven values")


def test_utility_table_and_its_rest() -> None:
    assert "170 more are in result.json" in page("many values")
    assert 'class="numbers' not in page("no data")


def test_charts_have_descriptions_keys_and_captions() -> None:
    found = outline(page("two values"))
    pictures = [one for one in found.all("svg") if one.attributes.get("class") == "chart"]
    assert len(pictures) == len(charts()) + 1 == len(found.all("figure")) == len(found.all("figcaption"))
    for picture in pictures:
        assert picture.attributes["role"] == "img"
        assert len(picture.attributes["aria-label"]) > 40
        assert "width" not in picture.attributes
        assert picture.attributes["viewbox"].startswith("0 0 ")
    assert "certified bracket" in page("two values").split("Central privacy against")[1]
    assert page("two values").count("this deployment") == len(charts())


def test_only_the_units_in_use_are_explained() -> None:
    assert "Bits measure" in page("two values")
    assert "Bits measure" not in page("no noise")


def evil(made: Report) -> Report:
    """Put markup into every text of the assessment."""
    assert made.population is not None
    finding = replace(made.findings[1], question=EVIL, adversary=EVIL, sentence=EVIL, proof=EVIL)
    source = Citation(key="evil", text=EVIL, where=EVIL)
    assert finding.bound.witness is not None
    witness = replace(finding.bound.witness, family=EVIL)
    finding = replace(finding, bound=replace(finding.bound, unit=EVIL, sources=(source,), witness=witness))
    chart = charts()[0]
    series = tuple(replace(one, label=EVIL) for one in chart.series)
    return replace(
        made,
        title=EVIL,
        question=EVIL,
        population=replace(made.population, labels=tuple(EVIL + str(i) for i in range(2)), source=EVIL),
        findings=(finding,),
        charts=(replace(chart, key=EVIL, title=EVIL, caption=EVIL, x_label=EVIL, y_label=EVIL, series=series),),
        warnings=(Warned(key=EVIL, sentence=EVIL, advice=EVIL),),
        specification=EVIL,
        software=((EVIL, EVIL),),
        citations=(source,),
    )


def test_markup_in_texts_stays_text() -> None:
    found = outline(report.html(evil(assessment(2))))
    assert {one.tag for one in found.elements}.isdisjoint({"script", "img"})
    assert not [one for one in found.elements if "onerror" in one.attributes or "src" in one.attributes]
    assert found.text("h1") == [EVIL]
    assert found.text("pre") == [EVIL]
    assert len(found.all("style")) == 1
