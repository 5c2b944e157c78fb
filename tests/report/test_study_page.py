from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from hushuffle import report
from hushuffle.model import Table
from report.outline import Outline, outline
from report.studies import EMPTY, heat_map, panel, point_map, study, table


@cache
def page() -> str:
    return report.html(study())


def read(text: str) -> Outline:
    return outline(text)


def test_everything_is_on_the_page() -> None:
    found = read(page())
    made = study()
    assert found.text("h1") == ["A study of <everything>"]
    assert found.text("h2") == [
        "Answers",
        "What each adversary learns",
        "How it is built",
        "Charts",
        "Maps",
        "Tables",
        "How to read the figures",
        "Settings",
        "References",
    ]
    titles = found.text("h3")
    assert titles == [
        *(diagram.title for diagram in made.diagrams),
        *(chart.title for chart in made.charts),
        *(heat.title for heat in made.heat_maps),
        *(point_map.title for point_map in made.maps),
        *(table.title for table in made.tables),
    ]
    assert found.text("h4") == ["no shuffle", "uniform shuffle"]
    assert "Yes: 40\N{NO-BREAK SPACE}% of the time." in page()
    for words in ("A second answer.", "Something is odd.", "Look twice.", "12,000", "hushuffle 0.1.0", "study.json"):
        assert words in page()
    assert "result.json" not in page()


def test_the_table_says_kinds_once_for_a_column_or_at_the_cell() -> None:
    found = read(page())
    cells = [" ".join(element.text.split()) for element in found.elements if element.tag in {"th", "td"}]
    for words in ("epsilon", "1,234,567", "0.2500 to 0.2600 nats", "not run", "infinity", "other <b>"):
        assert words in cells
    kinds = found.text("span")
    assert kinds.count("certified bracket") == 1 + sum(f.bound.kind == "bracket" for f in study().findings)
    assert "95% interval" in kinds


def test_self_contained_without_scripts() -> None:
    text = page()
    assert "<script" not in text
    assert not re.search(r"https?:|//[a-z]|@import|javascript:", text, re.IGNORECASE)
    assert "default-src 'none'" in text
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert text == report.html(study())


def test_only_the_kinds_in_use_are_explained() -> None:
    found = read(report.html(replace(EMPTY, tables=(table(1),))))
    assert found.text("dt")[:2] == ["certified bracket", "estimate (interval)"]
    assert "How to read the figures" not in report.html(EMPTY)


def test_nothing_to_show_is_a_page_too() -> None:
    found = read(report.html(EMPTY))
    assert found.text("h2") == ["Answers"]
    assert "None." in found.text("p")


def test_one_answer_makes_no_list() -> None:
    found = read(report.html(replace(EMPTY, answers=("Yes.",))))
    assert found.text("strong") == ["Yes."]
    assert found.all("ul") == []


def test_long_tables_are_cut_and_that_is_said() -> None:
    text = report.html(replace(EMPTY, tables=(table(450),)))
    assert "Shown: the first 200 rows; 250 more are in study.json." in text
    assert len(read(text).all("tr")) == 201


def test_pictures_of_nothing_say_so() -> None:
    nowhere = replace(panel(points=1), x=(float("inf"),))
    made = replace(EMPTY, maps=(point_map(nowhere),), heat_maps=(replace(heat_map(1, 1, log=True), values=((0.0,),)),))
    text = report.html(made)
    assert "No point of this map is finite." in text
    assert "No point of this chart is finite." in text
    assert "<svg" not in text


def test_a_page_of_many_points_stays_small() -> None:
    panels = [panel(f"panel {place}", points=12_000) for place in range(6)]
    text = report.html(replace(EMPTY, maps=(point_map(*panels),)))
    assert len(text) < 2_000_000


def test_both_files_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = replace(EMPTY, tables=(Table(key="t", title="T", caption="", columns=("a",), rows=((1,),)),))
    paths = report.write(made, tmp_path / "new" / "deep")
    assert [path.name for path in paths] == ["study.html", "study.json"]
    assert paths[0].read_text(encoding="utf-8") == report.html(made)
    assert paths[1].read_text(encoding="utf-8") == report.to_json(made)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match=r"No space left.*study\.html"):
        report.write(made, tmp_path / "other")
    assert [path.name for path in tmp_path.iterdir()] == ["new"]
