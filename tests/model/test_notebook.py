"""What a notebook shows, and figures as JSON."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.errors import InvalidInputError, MissingDependencyError
from hushuffle.model import Chart, Table, Target, Warned
from hushuffle.specification import parse

EXAMPLES = Path(__file__).parents[2] / "examples"
SURVEY = hs.Protocol(randomizer=hs.RandomizedResponse(k=3, epsilon=1.0), shuffler=hs.UniformShuffle(), n=500)
FILE = """
population = { n = 900, k = 3 }
randomizer = { kind = "randomized-response", epsilon = 1.0 }
shuffler = { kind = "uniform" }
targets = { delta = 1e-6 }
"""


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not attrs  # no script, no style, no address
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data + " "


def _text(shown: Any) -> str:
    tags = _Tags()
    tags.feed(shown._repr_html_())
    assert not tags.open
    return tags.text


@pytest.mark.parametrize(
    "bound",
    [
        hs.Bound.exact(0.25, unit="probability"),
        hs.Bound(lower=0.1, upper=math.inf, kind="bracket", unit="nats"),
        hs.Bound(lower=0.1, upper=0.2, kind="estimate", unit="probability", confidence=0.95),
        hs.dp.epsilon(SURVEY, delta=1e-6),
    ],
)
def test_a_figure_shows_its_number_and_its_kind_and_goes_into_json(bound: hs.Bound) -> None:
    figure, _, kind = str(bound).rpartition(" (")
    assert _text(bound).split() == [*figure.split(), *kind.removesuffix(")").split()]
    read = json.loads(json.dumps(bound.as_dict(), allow_nan=False))
    assert (float(read["lower"]), float(read["upper"])) == (bound.lower, bound.upper)
    assert (read["kind"], read["unit"], read.get("confidence")) == (bound.kind, bound.unit, bound.confidence)
    assert (read.get("witness") is None) == (bound.witness is None)


def test_an_estimate_shows_the_largest_shares_with_their_intervals() -> None:
    values = np.repeat([2, 0], [400, 100])
    found = hs.estimate(SURVEY.collect(values, rng=hs.reproducible(1)), protocol=SURVEY)
    text = _text(found)
    assert text.index(f"{found.frequencies[2]:.4f}") < text.index(f"{found.frequencies[0]:.4f}")
    assert f"{found.interval()[2, 0]:.4f} to {found.interval()[2, 1]:.4f}" in text
    many = hs.Protocol(randomizer=hs.RandomizedResponse(k=50, epsilon=1.0), shuffler=hs.UniformShuffle(), n=500)
    text = _text(hs.estimate(many.collect(values, rng=hs.reproducible(1)), protocol=many))
    assert "30 smaller shares are not shown" in text


def test_a_profile_shows_epsilon_at_several_deltas() -> None:
    profile = hs.dp.profile(SURVEY, least=1e-6)
    text = _text(profile)
    assert str(hs.dp.epsilon(SURVEY, delta=1e-6)) in text
    assert "1e-09" not in text
    assert str(profile.guess(0.5)) in text


def test_a_report_shows_targets_findings_warnings_and_tables_and_escapes_what_it_quotes() -> None:
    table = Table(key="t", title="<b>T", caption="", columns=("a", "b"), rows=(("x", hs.Bound.exact(1.0, unit="")),))
    target = Target(key="people", topic="People", rule="at least", asked=10, got=None, reason="No <data>.")
    warned = Warned(key="w", sentence="A & B.", advice="Do C.")
    made = hs.Report(
        title="<script>", question="", answers=("One.",), tables=(table,), targets=(target,), warnings=(warned,)
    )
    text = _text(made)
    assert all(
        part in text for part in ("<script>", "One.", "NOT KNOWN", "No <data>.", "A & B. Do C.", "<b>T", "x", "1")
    )
    finding = hs.assess(parse(FILE)).findings[0]
    assert finding.sentence in _text(hs.Report(title="t", question="", findings=(finding,)))


def test_a_deployment_is_assessed_from_its_file_as_from_what_was_read(tmp_path: Path) -> None:
    place = tmp_path / "survey.toml"
    place.write_text(FILE)
    from_file, read = hs.assess(str(place)), hs.assess(parse(FILE))
    assert [str(one.bound) for one in from_file.findings] == [str(one.bound) for one in read.findings]
    with pytest.raises(InvalidInputError, match="`deployment` must be"):
        hs.assess(3)  # type: ignore[arg-type]


def test_several_columns_are_assessed_together(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(
        "hushuffle.assessment.columns.SeveralColumns.assess",
        lambda columns, progress: asked.append((columns.collection.kind_of_deployment, columns.folder, progress)),
    )
    hs.assess(EXAMPLES / "collect-columns.toml")
    assert asked == [("columns", EXAMPLES, None)]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: hs.RandomizedResponse(5, 2.0),  # type: ignore[call-arg]
            r"RandomizedResponse needs keyword arguments: RandomizedResponse\(k=\.\.\., epsilon=\.\.\.\)\.",
        ),
        (lambda: hs.Protocol(1), r"Protocol\(randomizer=\.\.\., shuffler=\.\.\., n=\.\.\.\)"),  # type: ignore[call-arg,arg-type]
        (lambda: hs.Informed(1), r"Informed needs keyword arguments"),  # type: ignore[call-arg]
        (lambda: hs.MatrixRandomizer([[0.5, 0.5]], 2), r"MatrixRandomizer\(channel=\.\.\.\)"),  # type: ignore[call-arg]
    ],
)
def test_arguments_without_names_are_refused_with_the_names(call: Callable[[], object], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        call()


def test_a_chart_shows_itself() -> None:
    survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.UniformShuffle(), n=100)
    profile = hs.dp.profile(survey)
    for chart in (profile.chart(), profile.tests_chart()):
        text = chart._repr_html_()
        root = ET.fromstring(text)  # noqa: S314 - our own
        assert root.tag == "figure"
        places = [line.get("points", "") for line in root.iter("polyline")]
        assert len(places) == 2 * len(chart.series)
        for line in places:
            for place in line.split():
                x, y = map(float, place.split(","))
                assert 0 <= x <= 560
                assert 0 <= y <= 300
        for words in (chart.title, chart.x_label, chart.y_label, *(one.label for one in chart.series)):
            assert words in text
    infinite = replace(chart.series[0], upper=(math.inf, *chart.series[0].upper[1:]))
    root = ET.fromstring(replace(chart, series=(infinite,))._repr_html_())  # noqa: S314 - our own
    assert "inf" not in "".join(line.get("points", "") for line in root.iter("polyline"))
    empty = Chart(key="k", title="<b>", caption="", x_label="x", y_label="y", series=(), y_log=True)
    assert "&lt;b&gt;" in empty._repr_html_()


def test_a_chart_is_drawn_by_matplotlib_if_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    survey = hs.Protocol(randomizer=hs.RandomizedResponse(k=2, epsilon=1.0), shuffler=hs.UniformShuffle(), n=100)
    chart = hs.dp.profile(survey).chart()
    axes = MagicMock()
    axes.plot.return_value = (MagicMock(),)
    for name in ("matplotlib", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, name, MagicMock())
    assert chart.plot(axes) is axes
    axes.set.assert_called_once_with(title=chart.title, xlabel=chart.x_label, ylabel=chart.y_label)
    axes.set_yscale.assert_called_once_with("log")
    axes.fill_between.assert_called_once()
    exact = replace(chart, series=(replace(chart.series[0], lower=chart.series[0].upper),), here=chart.series[0].x[0])
    exact.plot(axes)
    axes.fill_between.assert_called_once()
    axes.axvline.assert_called_once()
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingDependencyError, match="pip install matplotlib"):
        chart.plot()
