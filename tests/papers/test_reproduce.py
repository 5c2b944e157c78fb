"""Every target that is quick and needs no data is built, rendered and validated; all of them are documented."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from hushuffle import papers as tools
from hushuffle import report
from hushuffle.errors import DataError, InvalidInputError
from hushuffle.model import Report
from hushuffle.model.report import software
from hushuffle.papers import Request, Target, find, reproduce, targets

QUICK = 3.0
TARGETS = targets()
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "reproduce.md"


def build(_: Request) -> Report:
    return Report(key="jurado2023/figure-1", title="T", question="Q?", answers=())


def test_names_are_those_of_papers_and_in_order() -> None:
    for name in TARGETS:
        assert re.fullmatch(r"[a-z]+(\d{4})?/(figure|table)-\d+[a-z]?(-[a-z0-9]+)*", name)
    numbers = [int(re.findall(r"\d+", name)[1]) for name in TARGETS if name.startswith("jurado2023/figure")]
    assert numbers == sorted(numbers)


@pytest.mark.parametrize("name", [name for name, one in TARGETS.items() if not one.data and one.seconds < QUICK])
def test_quick_targets_build_render_and_validate(name: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    shares: list[float] = []
    study = reproduce(name, Request(tell=lambda _, share: shares.append(share)))
    assert study.key == name
    assert study.answers
    assert study.tables or study.charts or study.maps or study.heat_maps
    assert study.sources
    assert study.software
    assert study.question.endswith("?")
    assert all(0 <= share <= 1 for share in shares)
    assert shares == sorted(shares)
    jsonschema.Draft202012Validator(report.json_schema("study")).validate(json.loads(report.to_json(study)))
    page = report.html(study)
    assert "No point of this" not in page
    assert len(page) < 2_000_000
    assert max(map(len, report.terminal(study).splitlines())) <= 80


@pytest.mark.parametrize("name", TARGETS)
def test_targets_say_what_they_are(name: str) -> None:
    target = TARGETS[name]
    assert target.name == name
    assert target.title
    assert not target.title.endswith(".")
    assert target.seconds > 0


def test_the_page_names_every_target_and_no_other() -> None:
    named = set(re.findall(r"`([a-z]+\d*/(?:figure|table)-[a-z0-9-]+)`", PAGE.read_text(encoding="utf-8")))
    assert named == set(TARGETS)


@pytest.mark.parametrize(
    "name", ["0/figure-1", "jurado2023/figure", "jurado2023/picture-1", "jurado2023/figure-1-", "jurado2023/figure-1 "]
)
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(InvalidInputError, match="PAPER/figure-N"):
        Target(name=name, title="T", build=build)


def test_figures_are_ordered_by_number_and_suffix(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [
        "jurado2023/table-1",
        "jurado2023/figure-10",
        "jurado2023/figure-2b",
        "jurado2023/figure-2",
        "jurado2023/figure-2a",
        "murakami2021/figure-1",
    ]
    module = ModuleType("hushuffle.papers.made_up")
    module.TARGETS = tuple(Target(name=name, title="T", build=build) for name in names)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(tools, "_MODULES", ("made_up",))
    expected = [
        "jurado2023/figure-2",
        "jurado2023/figure-2a",
        "jurado2023/figure-2b",
        "jurado2023/figure-10",
        "jurado2023/table-1",
        "murakami2021/figure-1",
    ]
    assert list(targets()) == expected
    assert [target.name for target in find("murakami2021")] == ["murakami2021/figure-1"]
    assert len(find("jurado2023")) == 5


def test_numbers_of_papers_are_understood() -> None:
    papers = {target.paper for target in TARGETS.values()}
    assert {tools.today(f"00{number}") for number in range(5)} == papers
    assert find("000/table-1") == find("jurado2023/table-1")
    assert find("004") == find("ladjel2021")
    assert reproduce("000/table-1", Request()).key == "jurado2023/table-1"


def test_close_names_are_suggested() -> None:
    with pytest.raises(InvalidInputError, match=r'there is no target "table-3"\. Did you mean jurado2023/table-3'):
        find("table-3")
    with pytest.raises(InvalidInputError, match=r'there is no target "\?\?".$'):
        find("??")
    with pytest.raises(InvalidInputError, match="Did you mean jurado2023/figure-"):
        find("jurado2023/figur-2")
    with pytest.raises(InvalidInputError, match='"jurado2023" is a paper, not one target'):
        reproduce("jurado2023", Request())
    with pytest.raises(InvalidInputError, match="there is no target"):
        reproduce("nothing like it", Request())


def test_software_is_filled_in_where_a_target_leaves_it(monkeypatch: pytest.MonkeyPatch) -> None:
    own = (("magic", "1"),)

    def with_own(request: Request) -> Report:
        return replace(build(request), software=own)

    made = {
        "jurado2023/figure-1": Target(name="jurado2023/figure-1", title="T", build=build),
        "jurado2023/figure-2": Target(name="jurado2023/figure-2", title="T", build=with_own),
    }
    monkeypatch.setattr(tools, "targets", lambda: made)
    assert reproduce("jurado2023/figure-1", Request()).software == software()
    assert reproduce("jurado2023/figure-2", Request()).software == own
    assert [name for name, _ in software("polars")] == ["python", "hushuffle", "numpy", "scipy", "polars"]


def test_data_sets_are_asked_for_by_name(tmp_path: Path) -> None:
    Request().tell("nobody listens", 0.5)
    with pytest.raises(DataError, match=r"needs the data set adult\. .*HUSHUFFLE_DATA"):
        Request().folder("adult")
    with pytest.raises(DataError, match="there is no such folder"):
        Request(data=tmp_path).folder("adult")
    (tmp_path / "adult").mkdir()
    assert Request(data=tmp_path).folder("adult") == tmp_path / "adult"
