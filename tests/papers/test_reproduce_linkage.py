"""The re-identification studies on small made-up data; attacks never beat the bounds."""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from hushuffle import report
from hushuffle.attacks import linkage
from hushuffle.mechanisms.randomizers import Symmetric
from hushuffle.model import Bound, Report, Table
from hushuffle_papers.base import Request
from hushuffle_papers.murakami2021 import linkage as figures
from hushuffle_papers.murakami2021 import noise as linkage_noise
from hushuffle_papers.murakami2021.attempts import attempts, information
from hushuffle_papers.murakami2021.datasets import checkins
from hushuffle_papers.murakami2021.sources import MeasuredDivergence, Source, matched, measure, table, unsettled
from hushuffle_papers.registry import targets

PEOPLE, PLACES, MOVIES = 110, 60, 150
TARGETS = {
    name: targets()[name] for name in (f"murakami2021/figure-{end}" for end in ("5", "5-sources", "6", "7", "8", "9"))
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write everybody's 100 to 139 check-ins at a few favourite places, 50 to 69 ratings, and two score matrices."""
    folder, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(7)
    for name in ("foursquare_nyc", "movielens_latest_small", "nist_bssr1_set1"):
        (folder / name).mkdir()
    favourites = [rng.choice(PLACES, 6, replace=False) for _ in range(PEOPLE)]
    visits = [(user, int(place)) for user in range(PEOPLE) for place in rng.choice(favourites[user], 100 + user % 40)]
    visits.append((PEOPLE, 0))  # somebody with too few
    users, places = zip(*visits, strict=True)
    checkins = pl.DataFrame({"user": users, "poi": places, "minute": range(len(visits))})
    checkins.write_parquet(folder / "foursquare_nyc" / "checkins.parquet")
    rows = ["userId,movieId,rating,timestamp"]
    for user in range(PEOPLE):
        movies = rng.choice(MOVIES, 50 + user % 20, replace=False)
        rows += [f"{user},{movie},4.5,{place}" for place, movie in enumerate(movies.tolist())]
    (folder / "movielens_latest_small" / "ratings.csv").write_text("\n".join(rows) + "\n")
    face = rng.normal(0.5, 0.05, (PEOPLE, PEOPLE)) + 0.2 * np.eye(PEOPLE)
    face[:, 3] = -1.0  # a failed enrolment
    finger = np.rint(rng.normal(10, 3, (PEOPLE, PEOPLE)) + 30 * np.eye(PEOPLE))
    np.savez(folder / "nist_bssr1_set1" / "bssr1_set1.npz", face_C=face, finger_left=finger)
    return folder


@pytest.fixture(scope="module")
def studies(data: Path) -> dict[str, Report]:
    return {name: TARGETS[name].build(Request(data=data)) for name in TARGETS if name < "murakami2021/figure-8"}


def column(shown: Table, name: str) -> list[Any]:
    place = shown.columns.index(name)
    return [row[place] for row in shown.rows]


@pytest.mark.parametrize(
    "name", ["murakami2021/figure-5", "murakami2021/figure-5-sources", "murakami2021/figure-6", "murakami2021/figure-7"]
)
def test_studies_without_noise_are_built_rendered_and_validated(studies: dict[str, Report], name: str) -> None:
    check(studies[name], name)


def check(study: Report, name: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    assert study.key == name
    assert study.question.endswith("?")
    assert study.tables
    assert study.charts
    assert any("in place of" in value for _, value in study.settings)
    jsonschema.Draft202012Validator(report.json_schema("study")).validate(json.loads(report.to_json(study)))
    assert "No point of this" not in report.html(study)
    assert study.claims or "most identifying" in study.answers[0]
    assert all(claim.data or claim.reason or "At the paper's" in claim.ours for claim in study.claims)


def test_the_failed_enrolment_is_left_out_and_said_so(studies: dict[str, Report]) -> None:
    study = studies["murakami2021/figure-5"]
    assert "1 more left out because they failed to enrol" in dict(study.settings)["face"]
    shown = dict(zip(column(study.tables[0], "what is sent"), column(study.tables[0], "people"), strict=True))
    assert shown["face"] == PEOPLE - 1
    assert shown["fingerprint"] == PEOPLE


def test_people_with_too_few_events_are_left_out(studies: dict[str, Report]) -> None:
    assert dict(studies["murakami2021/figure-5"].settings)["location traces"].startswith(
        f"check-ins of {PEOPLE} people"
    )


def test_dividing_by_the_length_names_the_same_person(studies: dict[str, Report]) -> None:
    shown = studies["murakami2021/figure-6"].tables[0]
    wrong = dict(zip(column(shown, "what is sent"), column(shown, "identification error"), strict=True))
    for known in (5, 50):
        raw, mean = (wrong[f"check-ins, {known} known, {how}"] for how in ("likelihood", "likelihood per event"))
        assert raw == pytest.approx(mean, abs=1e-12)


def test_scores_per_event_are_scores_over_lengths() -> None:
    scene = linkage.scene(linkage_walks(), events=None)
    raw, mean = (matched("walks", scene, per_event=per_event) for per_event in (False, True))
    assert mean.scores * scene.reported.lengths[:, None] == pytest.approx(raw.scores)
    assert raw.n == 3


def linkage_walks() -> Any:
    from hushuffle.model.traces import Traces  # noqa: PLC0415

    return Traces.of([[0, 1, 0, 1], [2, 2, 1, 2, 1, 1], [0, 2, 0, 2]], k=3)


def test_all_sources_are_compared_at_the_same_number_of_people() -> None:
    rng = np.random.default_rng(3)
    sources = [
        Source(label=f"{n} people", scores=rng.normal(0, 1, (n, n)) + np.eye(n), resolution=1e-6) for n in (130, 200)
    ]
    shares: list[float] = []
    found = measure(sources, Request(tell=lambda _, share: shares.append(share)))
    assert [one.trend.sizes[-1] for one in found] == [130, 130]
    assert [one.n for one in found] == [130, 200]
    assert found[0].compared == pytest.approx(found[0].bits)
    assert shares == [0.0, 0.5]
    shown = table(found, key="k", title="T")
    assert column(shown, "log2 people") == pytest.approx([math.log2(130), math.log2(200)])


def test_only_unsettled_divergences_are_warned_of() -> None:
    rng = np.random.default_rng(3)
    scores = rng.normal(0, 1, (130, 130)) + np.eye(130)
    (found,) = measure([Source(label="one", scores=scores, resolution=1e-6)], Request())
    still = replace(found, interval=Bound(lower=0, upper=1, kind="estimate", unit="bits", confidence=0.95))
    moving = replace(found, interval=replace(still.interval, upper=math.inf))
    assert unsettled([still]) == ()
    assert unsettled([still, moving])[0].sentence.startswith("1 of 2 divergences")


def test_ratings_need_more_events_if_they_reach_the_level_later() -> None:
    assert figures.later(2, None)
    assert figures.later(2, 4)
    assert not figures.later(None, 1)


def test_sources_in_one_order_by_bits_and_by_errors() -> None:
    def made(label: str, bits: float, equal_error: float) -> MeasuredDivergence:
        found = MeasuredDivergence.__new__(MeasuredDivergence)
        trend = figures_trend(bits)
        for name, value in {"label": label, "trend": trend, "equal_error": equal_error}.items():
            object.__setattr__(found, name, value)
        return found

    assert "same order" in figures._ranked([made("a", 9.0, 0.1), made("b", 3.0, 0.4)])
    assert "differently, the least first: b 0.1; a 0.4" in figures._ranked([made("a", 9.0, 0.4), made("b", 3.0, 0.1)])


def test_a_trace_is_below_the_face_only_from_the_number_of_events_that_the_claim_names() -> None:
    def made(lower: float, upper: float) -> MeasuredDivergence:
        found = MeasuredDivergence.__new__(MeasuredDivergence)
        interval = Bound(lower=lower, upper=upper, kind="estimate", unit="bits", confidence=0.95)
        object.__setattr__(found, "interval", interval)
        return found

    steps, face = [made(1.0, 2.0), made(3.0, 4.0)], made(5.0, 6.0)
    sentence = figures._below_the_face("ratings", (1, 5), steps, face)
    assert sentence.startswith("With 5 known ratings the interval of D is 3")
    assert figures._below_the_face("ratings", (1, 2), steps, face) == ""
    assert figures._below_the_face("ratings", (1, 5), steps, made(3.5, 6.0)) == ""


def figures_trend(bits: float) -> Any:
    from hushuffle.questions.pse import Trend  # noqa: PLC0415

    return Trend(sizes=(1, 2), bits=(0.0, bits), draws=(1, 1))


@pytest.mark.parametrize("k", [2, 3, 6])
def test_information_is_that_of_the_enumerated_channel(k: int) -> None:
    rng = np.random.default_rng(k)
    held = rng.dirichlet(np.ones(max(1, k - 1)))  # one value that nobody holds
    lie = Fraction(1, 3 * k)
    law = Symmetric(k=k, truth=1 - (k - 1) * lie, lie=lie)
    channel = [[float(law.truth if y == x else law.lie) for y in range(k)] for x in range(held.size)]
    outputs = [sum(held[x] * channel[x][y] for x in range(held.size)) for y in range(k)]
    slow = sum(
        held[x] * channel[x][y] * math.log2(channel[x][y] / outputs[y]) for x in range(held.size) for y in range(k)
    )
    assert information(law, held) == pytest.approx(slow, abs=1e-12)


def test_no_attack_beats_a_bound_and_bounds_are_in_order(data: Path) -> None:
    shares: list[float] = []
    request = Request(data=data, tell=lambda _, share: shares.append(share))
    places = checkins(request).traces
    found = attempts(request, places, epsilons=(0.5, 3.0, 6.0), rounds=3)
    assert places.n == PEOPLE
    assert shares == sorted(shares)
    for one in found:
        assert not one.impossible  # false alarm 1e-6 each
        assert one.here <= one.exact.upper <= min(one.published, one.general) * (1 + 1e-12)
        assert one.least.lower <= one.least_here
        assert one.fano(one.general) <= one.fano(one.published) <= one.fano(one.exact.upper) <= one.least.lower
        assert one.places.size == 3 * PEOPLE
        assert one.error.lower <= one.wrong <= one.error.upper
        assert 0 <= one.fano(one.divergence) <= 1
    assert found[-2].wrong < found[0].wrong


def test_an_attack_that_beats_a_bound_is_noticed(data: Path) -> None:
    places = checkins(Request(data=data))
    response, _ = attempts(Request(data=data), places.traces, epsilons=(0.5,), rounds=2)
    lucky = replace(response, places=np.ones(5000, dtype=np.int64))
    assert lucky.impossible
    claim = linkage_noise._error_claims([lucky], places)[0]
    assert (claim.verdict, claim.sentence) == (
        "contradicted",
        "No attack is right more often than the bounds allow.",
    )
    assert claim.ours.startswith("In 1 of 1")


def test_studies_of_noise_are_built_rendered_and_validated(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request = Request(data=data)
    made = attempts(request, checkins(request).traces, epsilons=(2.0, 5.0, 9.0), rounds=2)
    monkeypatch.setattr(linkage_noise, "attempts", lambda *_, **__: made)
    for name in ("murakami2021/figure-8", "murakami2021/figure-9"):
        study = TARGETS[name].build(request)
        check(study, name)
        assert len(study.tables[0].rows) == 6


def test_divergences_that_are_not_known_well_enough_are_not_compared() -> None:
    assert linkage_noise._closeness([], 4, "9 people.", "Another city.").verdict == "not testable"
    assert linkage_noise._closeness([1.5, 2.0], 4, "9 people.", "Another city.").verdict == "holds on other data"
    assert linkage_noise._closeness([1.5, 9.0], 4, "9 people.", "Another city.").verdict == "differs on other data"


@pytest.mark.data
def test_real_check_ins() -> None:
    folder = os.environ.get("HUSHUFFLE_DATA")
    if folder is None:
        pytest.skip("HUSHUFFLE_DATA is not set: it names the folder of the data sets")
    request = Request(data=Path(folder))
    found = attempts(request, checkins(request).traces, epsilons=(4.0, 8.0, 12.0), rounds=1)
    for one in found:
        assert not one.impossible  # false alarm 1e-6 each
        assert one.here <= one.exact.upper <= one.published
    response = [one for one in found if one.mechanism == "randomized response"]
    assert [round(one.published, 3) for one in response] == [0.104, 3.702, 9.772]
    assert 0.75 < response[1].wrong < 0.87  # 0.81 over many rounds; standard deviation 0.012


def test_matchers_of_visits_beside_the_markov_model(data: Path) -> None:
    study = linkage_noise.matchers(Request(data=data))
    assert [claim.verdict for claim in study.claims] == ["confirmed"]
    wrong, noise = study.tables
    by_score = {score: [float(str(row[2])) for row in wrong.rows if row[1] == score] for score in linkage_noise.SCORES}
    assert all(found[-1] <= found[0] for found in by_score.values())  # more check-ins, fewer errors
    assert (
        by_score[linkage_noise.MARKOV] == by_score[linkage_noise.SHARED_OUT]
    )  # dividing by the length names the same person
    scene = linkage.scene(checkins(Request(data=data), long=True).traces, events=None)
    profiles = linkage.train(scene.training)
    assert np.array_equal(
        linkage_noise.scored(profiles, scene.reported, linkage_noise.MARKOV),
        linkage.trace_scores(profiles, scene.reported),
    )
    for epsilon, _, error, least in noise.rows:
        assert float(str(epsilon)) in (8.0, 12.0)
        assert isinstance(least, Bound)
        assert float(str(error)) >= least.lower - 0.25  # Hoeffding over 110 people: 1e-6
