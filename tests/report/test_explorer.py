"""The page with sliders: moved in Chromium by key and by script, its figures against the library's."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hushuffle as hs
from browser import CHROMIUM, measured
from chromium import Page, chromium
from hushuffle import report
from hushuffle.assessment.explore import explore
from hushuffle.assessment.trials import worst_error
from hushuffle.mechanisms.adversaries import Strong, Uninformed
from hushuffle.model import Bound, number
from hushuffle.model.bound import percent
from hushuffle.model.explorer import Explorer
from hushuffle.questions import pie, qif
from hushuffle.questions.qif.guessing import guarantee_vulnerability
from hushuffle.specification import build_protocol, parse

SURVEY = """
title = "A </script><b>survey</b> & more"
[population]
n = 200
categories = ["no", "</script>", "@n@"]
[randomizer]
kind = "randomized-response"
epsilon = 1.5
[shuffler]
kind = "uniform"
[[adversaries]]
kind = "informed"
m = 100
[targets]
delta = 1e-5
standard_error = 0.1
"""
TWO = """
population = { n = 300, k = 2 }
randomizer = { kind = "randomized-response", epsilon = 2.0 }
shuffler = { kind = "uniform" }
targets = { delta = 1e-4 }
"""
SENDING = """
population = { n = 200, k = 4 }
randomizer = { kind = "randomized-response", epsilon = "inf" }
shuffler = { kind = "blanket-messages", p = 0.6, trials = 2, honest = 0.85 }
targets = { delta = 1e-4 }
"""
FAKES = SENDING.replace('"blanket-messages", p = 0.6, trials = 2', '"fakes-per-value", p = 0.2')
KEYS = ("n", "k", "epsilon", "delta", "dummies", "colluders")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: apt-get install chromium")
Places = dict[str, int]


@cache
def explored(text: str) -> Explorer:
    return explore(parse(text))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with chromium(tmp_path_factory.mktemp("chromium")) as page:
        yield page


def opened(browser: Page, text: str, folder: Path, *, width: int = 1280) -> Explorer:
    made = explored(text)
    file = folder / "explorer.html"
    file.write_text(report.explorer_html(made), encoding="utf-8")
    browser.complaints.clear()
    browser.open(file, width=width)
    return made


def own(made: Explorer) -> Places:
    return {axis.key: axis.start for axis in made.axes}


def library(toml: str, hidden: int) -> dict[str, Bound]:
    """The figures of a downloaded specification; `hidden` are the people without the colluders."""
    specification = parse(toml)
    people = specification.population.read(Path())
    protocol = build_protocol(specification, n=people.n, k=people.k)
    delta, error = specification.targets.delta, worst_error(protocol)
    honest = replace(protocol, n=hidden, shuffler=protocol.shuffler.secret(people.n)[1])
    guessed = {}
    if honest.shuffler.value_law is None:
        guessed = {
            "uninformed": qif.quick_vulnerability(honest, adversary=Uninformed()),
            "strong": qif.quick_vulnerability(honest, adversary=Strong()),
        }
    return {
        **guessed,
        "central": hs.dp.epsilon(protocol, delta=delta),
        "colluders": hs.dp.epsilon(honest, delta=delta),
        "local": hs.dp.local_epsilon(protocol),
        "linker": pie.bayes_error(honest).complement,
        "worst": Bound(lower=error * (1 - 1e-9), upper=error * (1 + 1e-9), kind="bracket", unit=""),
    }


def at(browser: Page, places: Places) -> dict[str, Any]:
    made = f"(stand => ({{figures: figures(stand), at: meant(stand), toml: toml(stand)}}))({json.dumps(places)})"
    text = browser.run(f"JSON.stringify({made}, (_, value) => (value === Infinity ? 'Infinity' : value))")
    found: dict[str, Any] = json.loads(text.replace('"Infinity"', "Infinity"))
    return found


def held(found: dict[str, Any], truth: dict[str, Bound]) -> None:
    """The page's ends and the library's hold the same truth."""
    for key, bound in truth.items():
        shown = found["figures"][key]
        assert shown["lower"] <= bound.upper * (1 + 1e-9), (key, shown, bound)
        assert bound.lower <= shown["upper"] * (1 + 1e-9), (key, shown, bound)


@needs_chromium
@pytest.mark.browser
@pytest.mark.parametrize("places", [pytest.param(3, id="a few"), pytest.param(50, id="many", marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "text", [SURVEY, TWO, SENDING, FAKES], ids=["three values", "two values", "several messages", "fakes of each value"]
)
def test_at_random_places_the_truth_is_within_the_bracket(
    browser: Page, tmp_path: Path, text: str, places: int
) -> None:
    made = opened(browser, text, tmp_path)
    rng = np.random.default_rng(7)
    for _ in range(places):
        found = at(browser, {axis.key: int(rng.integers(len(axis.stops))) for axis in made.axes})
        held(found, library(found["toml"], found["at"]["hidden"]))


@needs_chromium
@pytest.mark.browser
def test_at_the_deployment_itself_the_figures_and_words_are_the_librarys(browser: Page, tmp_path: Path) -> None:
    made = opened(browser, SURVEY, tmp_path)
    assert browser.complaints == []
    found = at(browser, own(made))
    assert parse(found["toml"]) == parse(SURVEY)
    for key, bound in library(SURVEY, 200).items():
        if key != "worst":
            shown = found["figures"][key]
            assert (shown["lower"], shown["upper"], shown["kind"]) == (bound.lower, bound.upper, bound.kind)
            row = browser.run(f"document.getElementById('row-{key}').innerText").replace("\n", " ")
            figure, _, kind = str(bound).rpartition(" (")
            assert figure in re.sub(r"\s+", " ", row)
            assert kind.removesuffix(")") in row
    assert browser.run("document.title") == "A </script><b>survey</b> & more: explorer"
    assert browser.run("document.querySelectorAll('b').length") == 0


@needs_chromium
@pytest.mark.browser
def test_every_slider_is_moved_with_the_keyboard_alone(browser: Page, tmp_path: Path) -> None:
    made = opened(browser, SURVEY, tmp_path)
    before = browser.run("document.getElementById('row-central').innerText")
    places = own(made)
    browser.run("document.body.focus()")
    for axis in made.axes:
        while browser.run("document.activeElement.id") != axis.key:
            browser.press("Tab")
        assert browser.run("getComputedStyle(document.activeElement).outlineStyle") == "solid"
        key, step = ("ArrowLeft", -1) if axis.start == len(axis.stops) - 1 else ("ArrowRight", 1)
        browser.press(key)
        places[axis.key] += step
        label = browser.run(f"document.getElementById('{axis.key}-value').textContent")
        assert label == browser.run(f"document.getElementById('{axis.key}').getAttribute('aria-valuetext')")
        found = at(browser, places)
        assert browser.run("toml(places)") == found["toml"]
        held(found, library(found["toml"], found["at"]["hidden"]))
        kind = {"exact": "exact", "bracket": "certified bracket", "upper": "upper bound"}
        row = browser.run("document.querySelector('#row-colluders .kind').textContent")
        shown = found["figures"]["colluders"]
        assert row == kind[shown["kind"]] + ("" if shown["computed"] else ", between grid points")
    assert browser.run("document.getElementById('row-central').innerText") != before
    while browser.run("document.activeElement.id") != "reset":
        browser.press("Tab")
    browser.press("Enter")
    assert browser.run("document.getElementById('row-central').innerText") == before
    for end, place in (("End", 12), ("Home", 0)):
        while browser.run("document.activeElement.id") != "n":
            browser.press("Tab", shift=True)
        browser.press(end)
        assert browser.run("places.n") == place


@needs_chromium
@pytest.mark.browser
def test_the_download_is_a_specification_of_what_the_sliders_show(browser: Page, tmp_path: Path) -> None:
    made = opened(browser, SURVEY, tmp_path)
    browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path / "got"))
    for axis in made.axes:
        place = 0 if axis.start else len(axis.stops) - 1
        browser.run(
            f"(one => {{ one.value = {place}; one.dispatchEvent(new Event('input')); }})"
            f"(document.getElementById('{axis.key}'))"
        )
    browser.run("document.getElementById('download').click()")
    file = tmp_path / "got" / "specification.toml"
    for _ in range(200):
        if file.is_file():
            break
        browser.run("new Promise(done => setTimeout(done, 50))")
    saved = parse(file.read_text(encoding="utf-8")).plain()
    stops = {axis.key: axis.stops for axis in made.axes}
    assert saved["population"] == {"n": stops["n"][0], "k": stops["k"][0]}
    assert saved["targets"] == {"delta": stops["delta"][0], "standard_error": 0.1}
    assert saved["shuffler"] == {"kind": "scrambler", "dummies": stops["dummies"][-1]}
    assert saved["randomizer"]["epsilon"] == stops["epsilon"][0]
    assert saved["statement"]["colluders"] == math.ceil(0.9 * stops["n"][0])
    assert browser.run("document.getElementById('toml').textContent") == file.read_text(encoding="utf-8")
    assert browser.complaints == []


@needs_chromium
@pytest.mark.browser
@pytest.mark.parametrize("text", [SENDING, FAKES], ids=["blanket messages", "fakes of each value"])
def test_messages_of_people_slide_and_are_downloaded(browser: Page, tmp_path: Path, text: str) -> None:
    made = opened(browser, text, tmp_path)
    assert browser.complaints == []
    found = at(browser, own(made))
    assert parse(found["toml"]) == parse(text)
    truth = library(text, 170)
    assert found["at"]["hidden"] == 170
    for key in ("central", "colluders", "linker"):
        shown, bound = found["figures"][key], truth[key]
        assert (shown["lower"], shown["upper"], shown["kind"]) == (bound.lower, bound.upper, bound.kind)
    row = browser.run("document.getElementById('row-local').innerText")
    assert "nothing protects your answer" in row
    assert "infinity" in row
    titles = browser.run("[...document.querySelectorAll('figure h3')].map(one => one.textContent)")
    assert "Privacy against the number of additional messages" in titles
    assert "Accuracy against the number of additional messages" in titles
    proven = browser.run("document.querySelector('[aria-labelledby=between] p').textContent")
    assert ("more messages" in proven) == (text is SENDING)
    assert ("the number of fake reports" in proven) == (text is FAKES)
    for axis in made.axes:
        for place in {0, len(axis.stops) - 1}:
            stand = {**own(made), axis.key: place}
            held(at(browser, stand), library(at(browser, stand)["toml"], at(browser, stand)["at"]["hidden"]))
    browser.size(390)
    assert browser.run("document.documentElement.scrollWidth") <= 390
    # Where epsilon is infinite nothing is drawn.
    stops, drawn = made.axes[0].stops, "[...document.querySelectorAll('svg.chart')][0].querySelectorAll('circle')"
    shown = [at(browser, {**own(made), "n": place})["figures"]["central"] for place in range(len(stops))]
    finite = sum(one["computed"] and one["upper"] < math.inf for one in shown)
    assert browser.run(f"{drawn}.length") == finite
    caption = browser.run("document.querySelector('figcaption').textContent")
    assert ("no finite bound is proven" in caption) == any(one["upper"] == math.inf for one in shown)
    # Nine tenths of the people are told: at worst all of them were honest, and nobody is left.
    alone = at(browser, {**own(made), "colluders": len(made.axes[-1].stops) - 1})
    assert alone["at"]["hidden"] == 1
    assert (alone["figures"]["colluders"]["kind"], alone["figures"]["colluders"]["upper"]) == ("exact", math.inf)


@needs_chromium
@pytest.mark.browser
def test_it_fits_a_phone_and_a_sheet(browser: Page, tmp_path: Path) -> None:
    page = report.explorer_html(explored(SURVEY))
    assert len(page.encode()) < 3_000_000
    for width in (320, 390, 768, 1280):
        opened(browser, SURVEY, tmp_path, width=width)
        assert browser.run("document.documentElement.scrollWidth") <= width
        wide = (
            "[...document.querySelectorAll('body *')].filter(one => one.getBoundingClientRect().right > innerWidth + 1)"
        )
        assert browser.run(f"{wide}.map(one => one.outerHTML.slice(0, 80))") == []
    browser.size(390)
    for cell in ("th", "td"):
        assert browser.run(f"document.querySelector('#row-central {cell}').getBoundingClientRect().width") >= 300
    assert browser.run("document.getElementById('n').getBoundingClientRect().height") >= 24
    assert browser.run("document.querySelectorAll('svg.chart').length") == 4
    browser.size(1280)
    printed = browser.printed()
    assert printed.startswith(b"%PDF")
    reader = shutil.which("pdftotext")
    if reader is not None:
        (tmp_path / "page.pdf").write_bytes(printed)
        text = subprocess.run([reader, tmp_path / "page.pdf", "-"], capture_output=True, text=True, check=True).stdout
        for words in ("certified bracket", "Colluders", "Accuracy against the noise on each device", "randomizer"):
            assert words in text


WEEKLY = """
rounds = 4
population = { n = 200, k = 3 }
randomizer = { kind = "randomized-response", epsilon = 1.0 }
shuffler = { kind = "uniform" }
targets = { delta = 1e-3 }
"""


@needs_chromium
@pytest.mark.browser
def test_guesses_from_all_rounds_are_those_of_the_assessment(browser: Page, tmp_path: Path) -> None:
    made = opened(browser, WEEKLY, tmp_path)
    assert browser.complaints == []
    found = at(browser, own(made))["figures"]["strong"]
    protocol = build_protocol(parse(WEEKLY), n=200, k=3)
    central = hs.dp.compose([(protocol, 4)], delta=1e-3)
    assert found["upper"] == pytest.approx(guarantee_vulnerability(3, epsilon=central.upper, delta=1e-3).upper)
    row = browser.run("document.getElementById('row-strong').innerText")
    assert "from all 4 rounds" in row
    assert "upper bound" in row
    assert "Guessing against the number of people" in browser.run("document.getElementById('pictures').innerText")


@needs_chromium
@pytest.mark.browser
def test_a_factor_above_a_thousand_is_words(browser: Page, tmp_path: Path) -> None:
    opened(browser, WEEKLY.replace("epsilon = 1.0", "epsilon = 6.0").replace("n = 200", "n = 3"), tmp_path)
    for row in ("local", "central"):
        text = browser.run(f"document.querySelector('#row-{row} .sentence').innerText")
        assert "practically readable" in text
        assert "factor" not in text


@needs_chromium
@pytest.mark.browser
def test_the_summary_stays_in_sight_on_a_phone_and_figures_between_grid_points_are_marked(
    browser: Page, tmp_path: Path
) -> None:
    made = opened(browser, SURVEY, tmp_path, width=390)
    for place in ("0", "document.body.scrollHeight"):
        browser.run(f"window.scrollTo(0, {place})")
        summary = "document.getElementById('summary').getBoundingClientRect()"
        box = [browser.run(f"{summary}.top"), browser.run(f"{summary}.bottom"), browser.run("innerHeight")]
        assert 0 <= box[0] < box[1] <= box[2] + 1
        assert box[1] - box[0] <= 0.33 * box[2]
    marks = set()
    for stop in range(len(made.axes[0].stops)):
        found = at(browser, {**own(made), "n": stop})
        slider = "document.getElementById('n')"
        browser.run(f"{slider}.value = {stop}")
        browser.run(f"{slider}.dispatchEvent(new Event('input', {{ bubbles: true }}))")
        text = browser.run("document.querySelector('#row-central .kind').textContent")
        computed = found["figures"]["central"]["computed"]
        assert text.endswith("between grid points") != computed
        marks.add(computed)
    assert True in marks


@needs_chromium
@pytest.mark.browser
def test_charts_have_readable_labels_apart(tmp_path: Path) -> None:
    pages = [report.explorer_html(explored(text)) for text in (SURVEY, TWO, SENDING)]
    for found in measured(pages, (390, 1280), tmp_path):
        assert found["overlaps"] == []
        assert found["smallest"] >= 10


@needs_chromium
@pytest.mark.browser
def test_numbers_are_written_as_in_every_report(browser: Page, tmp_path: Path) -> None:
    opened(browser, TWO, tmp_path)
    rng = np.random.default_rng(3)
    values = [10 ** rng.uniform(-9, 9) for _ in range(300)] + [1 - 10 ** rng.uniform(-9, -1) for _ in range(60)]
    values += [0.0, 1.0, 0.5, 9999.5, 12345.0, 0.00099996, 1e-300, 0.99995, 2.0, 123456.7]
    close = "ticks(1e-5, 1.02e-5, false, 6).map(short)"
    assert browser.run(f"{close}.length === new Set({close}).size && {close}.length > 2")
    for up, said in ((None, "undefined"), (True, "true"), (False, "false")):
        shown = browser.run(f"{json.dumps(values)}.map(one => number(one, {said}))")
        assert shown == [number(value, up=up) for value in values]
        shares = [value for value in values if 1e-9 < value < 1]
        shown = browser.run(f"{json.dumps(shares)}.map(one => percent(one, {said}))")
        assert shown == [percent(value, up=up).replace(" ", "\N{NO-BREAK SPACE}") for value in shares]


def test_the_page_loads_nothing_and_runs_its_own_script_alone() -> None:
    page = report.explorer_html(explored(SURVEY))
    assert "default-src 'none'" in page
    assert "script-src 'sha256-" in page
    assert "unsafe-inline" not in page.replace("style-src 'unsafe-inline'", "")
    assert re.findall(r"(?:src|href)=\"(?!#)", page) == []
    assert "http" not in page.replace('http-equiv="Content-Security-Policy"', "").replace(
        "http://www.w3.org/2000/svg", ""
    )
    assert page == report.explorer_html(explored(SURVEY))


def contrast(first: str, second: str) -> float:
    def light(color: str) -> float:
        parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((light(first), light(second)))
    return (high + 0.05) / (low + 0.05)


def test_colors_are_told_apart() -> None:
    """WCAG AA: 4.5 for text, 3 for lines and controls."""
    page = report.explorer_html(explored(TWO))
    names = dict(re.findall(r"--(ink|quiet|link): (#[0-9a-f]{6});", page))
    assert all(contrast(color, "#ffffff") >= 4.5 for color in names.values())
    (lines,) = re.findall(r"const COLORS = (\[.*?\])", page)
    assert all(contrast(color, "#ffffff") >= 3 for color in json.loads(lines))
    assert contrast("#d55e00", "#ffffff") >= 3  # the ring around what has the focus
