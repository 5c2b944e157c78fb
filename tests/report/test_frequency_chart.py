from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np

from hushuffle.model import Estimate
from hushuffle.report.frequency_chart import Frequencies, frequency_html, frequency_svg


def part(k: int = 3, *, title: str = "Smokes <often> & much", people: int = 1000) -> Frequencies:
    frequencies = np.arange(k) / (k * (k - 1) / 2)
    made = Estimate(frequencies=frequencies, raw=frequencies, n=people, variance_intercept=1e-4, variance_slope=0.0)
    labels = [f"label {one}" for one in range(k)]
    return Frequencies(title=title, estimate=made, labels=labels, confidence=0.9, people=people)


def texts(picture: str) -> list[str]:
    return ["".join(one.itertext()) for one in ET.fromstring(picture).iter() if one.tag.endswith("text")]  # noqa: S314


def test_a_picture_of_its_own() -> None:
    picture = frequency_svg([part(), part(title="Second")])
    assert picture.startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    assert picture.count("http") == 1  # the name of the format; nothing is fetched
    shown = texts(picture)
    assert "Smokes <often> & much" in shown
    assert shown[1:3] == ["1,000 people; estimate and 90% interval; the number of", "people is after the colon"]
    assert {"label 0: 0", "label 1: 333", "label 2: 667", "Second"} < set(shown)
    identifiers = [one.attrib["id"] for one in ET.fromstring(picture).iter() if "id" in one.attrib]  # noqa: S314
    assert len(set(identifiers)) == len(identifiers)


def test_the_largest_of_many() -> None:
    many = part(31)
    assert many.rows == tuple(range(30, 0, -1))
    most = "the 30 most frequent of 31 values; 1,000 people; estimate and 90% interval"
    assert many.caption == f"{most}; the number of people is after the colon"
    shown = texts(frequency_svg([many]))
    assert "label 30: 65" in shown
    assert "label 0" not in shown
    assert part(30).rows == tuple(range(30))
    assert part(people=1).caption.startswith("1 person; ")


def test_a_page_around_it() -> None:
    page = frequency_html([part()])
    assert "<title>Smokes &lt;often&gt; &amp; much</title>" in page
    assert frequency_svg([part()]) in page
