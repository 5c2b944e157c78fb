"""The re-identification studies on files in the form of the paper's own data sets, small and made up."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from hushuffle.attacks import linkage
from hushuffle.cli import main
from hushuffle.cli.console import Exit
from hushuffle.errors import DataError
from hushuffle.model import Report
from hushuffle_papers.base import Request
from hushuffle_papers.murakami2021 import datasets
from hushuffle_papers.murakami2021.datasets import ORIGINALS, checkins, matrices, ratings, stand_in, visitors
from hushuffle_papers.murakami2021.sources import decided
from hushuffle_papers.registry import reproduce

LONG, FEW, PLACES, MOVIES = 160, 40, 60, 700


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write 160 people of 1,000 check-ins and 500 liked films or more, others of fewer, and three matrices."""
    folder, rng = tmp_path_factory.mktemp("originals"), np.random.default_rng(7)
    for name, _ in ORIGINALS:
        (folder / name).mkdir()
    lengths = [*(1_000 + user % 40 for user in range(LONG)), *[12] * FEW, 3]
    users = np.repeat(np.arange(len(lengths)), lengths)
    favourites = np.array([rng.choice(PLACES, 6, replace=False) for _ in lengths])
    visits = favourites[users, rng.integers(0, 6, users.size)]
    pl.DataFrame(
        {
            "user": users,
            "venue": [f"{place:024x}" for place in visits],
            "time": pl.Series(np.arange(users.size) * 1_000).cast(pl.Datetime("ms")),
            "offset": np.full(users.size, -240),
        }
    ).with_columns(pl.col("time").dt.strftime("%a %b %d %H:%M:%S +0000 %Y")).write_csv(
        folder / "foursquare_global" / "raw_Checkins_anonymized.txt",
        separator="\t",
        include_header=False,
        quote_style="never",
    )
    liked = [rng.choice(MOVIES, 500 if user < LONG else 12, replace=False) for user in range(LONG + FEW)]
    raters = np.repeat(np.arange(LONG + FEW), [len(some) for some in liked])
    films = np.concatenate(liked)
    pl.DataFrame({"userId": raters, "movieId": films, "rating": 4.5, "timestamp": np.arange(films.size)}).write_csv(
        folder / "movielens" / "ratings.csv"
    )
    face, finger, vein = (rng.normal(0, 1, (n, n)) + mean * np.eye(n) for n, mean in ((140, 3), (150, 4), (130, 5)))
    np.savetxt(folder / "scores" / "face.csv", 500 + np.rint(face * 100) / 4, delimiter=",")
    np.savez(folder / "scores" / "fingerprint.npz", scores=finger)
    np.savetxt(folder / "scores" / "finger-vein.txt", vein)
    return folder


@pytest.fixture
def as_many_as_the_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the small files for as many people as the paper has."""
    small = {"foursquare_global": LONG, "movielens": LONG, "face": 100, "fingerprint": 100}
    monkeypatch.setattr(datasets, "_PEOPLE", small)


def made(name: str, folder: Path) -> Report:
    return reproduce(f"murakami2021/{name}", Request(data=folder))


def shown(study: Report) -> str:
    return " ".join(text for _, text in study.settings)


def test_small_originals_scale_up_and_contradict_nothing(originals: Path) -> None:
    study = made("figure-6", originals)
    assert {claim.verdict for claim in study.claims} <= {"holds on other data", "differs on other data", "not testable"}
    known = [row[0] for row in study.tables[0].rows if "check-ins" in str(row[0])]
    assert known[::2] == [f"check-ins, {m} known, likelihood" for m in (100, 200, 300, 400, 500)]
    told = " ".join(claim.data + claim.reason for claim in study.claims)
    assert "1,370,637 people with check-ins all over the world, 185,107 people who rate, 3,000 faces" in told
    assert "The paper's attacker knows" not in told  # this one knows as many
    settings = dict(study.settings)
    assert settings["location traces"] == f"check-ins of {LONG} people at {PLACES} places all over the world"
    assert settings["ratings"].startswith(f"MovieLens, 4 stars or more, {LONG} people; ")
    assert settings["face"] == "face.csv of the data set scores, 140 people"
    assert "face 0.25" in settings["resolution"]
    assert "finger vein" in [row[0] for row in study.tables[0].rows]


@pytest.mark.usefixtures("as_many_as_the_paper")
@pytest.mark.parametrize("name", ["figure-5", "figure-6", "figure-7"])
def test_on_as_many_people_as_the_paper_nothing_stands_in(originals: Path, name: str) -> None:
    study = made(name, originals)
    assert "in place of" not in shown(study)
    moving = "The estimate of D converges as people are added."
    others = [claim for claim in study.claims if claim.sentence != moving]
    assert others
    assert {claim.verdict for claim in others} <= {"confirmed", "contradicted", "not testable"}
    assert not any("The paper has" in claim.reason + claim.data for claim in study.claims)
    assert any("of the whole world" in claim.data for claim in study.claims) == (name != "figure-6")


@pytest.mark.usefixtures("as_many_as_the_paper")
def test_one_check_in_of_everybody(originals: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hushuffle_papers.murakami2021.buckets.EPSILONS", (8.0, 20.0))
    study = made("figure-10-checkins", originals)
    population = f"one check-in, the first of the latter half, of {LONG + FEW} people at {PLACES} places"
    assert population in shown(study)
    assert ("buckets", "100,000,000") in study.settings
    assert {claim.verdict for claim in study.claims} <= {"confirmed", "contradicted", "not testable"}


def test_bounds_for_a_sample_contradict_nothing(originals: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (linkage, linkage.reports):
        monkeypatch.setattr(module, "ATTACKED", 120)
    for name in ("figure-8", "figure-9"):
        study = reproduce(f"murakami2021/{name}", Request(data=originals), quick=True)
        assert any(f"{LONG + FEW} people with check-ins in the whole world" in claim.data for claim in study.claims)
        assert ("attacked", f"in each round 120 people, each compared with all {LONG + FEW}") in study.settings
    assert made("section-3-matchers", originals).claims[0].verdict == "confirmed"


def test_many_people_are_scored_as_a_sample_and_the_page_says_so(
    originals: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datasets, "SCORED", 20)
    drawn = [checkins(Request(data=originals, seed=seed), long=True) for seed in (1, 1, 2)]
    assert [places.n for places in drawn] == [20] * 3
    assert checkins(Request(data=originals), every=True).n == LONG + FEW
    assert drawn[0].source.startswith("check-ins of 20 people, drawn at random from 160 with 1,000 events or more, at ")
    users = [places.traces.users.tolist() for places in drawn]
    assert users[0] == users[1] != users[2]
    assert all(places.traces.lengths.min() >= 1_000 for places in drawn)
    everybody = visitors(Request(data=originals))
    assert everybody is not None
    assert everybody.n == LONG + FEW


def test_too_few_long_traces_ask_for_a_tenth(originals: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets, "_ENOUGH", LONG + 1)
    places, movies = checkins(Request(data=originals), long=True), ratings(Request(data=originals), long=True)
    assert places.known == (5, 10, 20, 30, 40, 50)
    assert (places.at_least, movies.at_least) == (100, 50)
    assert places.short
    assert movies.short
    assert not checkins(Request(data=originals)).short


@pytest.mark.usefixtures("as_many_as_the_paper")
def test_what_one_claim_needs_may_be_the_papers_own_while_other_data_are_not(originals: Path) -> None:
    request = Request(data=originals)
    places, movies = checkins(request), ratings(request)
    datasets._PEOPLE["movielens"] = 10 * LONG
    few = ratings(request)
    assert stand_in([places, movies], [places, movies]) == ""
    assert stand_in([places], [places, few]) == ""
    assert stand_in([few], [places, few]) == "The paper has 185,107 people who rate."
    assert stand_in([few], [few]) == datasets.STAND_IN


def test_an_estimate_contradicts_only_beyond_its_interval() -> None:
    def verdict(*, holds: bool, stand_in: str, sure: bool) -> str:
        return decided("S.", holds, "Ours.", quote="s", data="D.", stand_in=stand_in, sure=sure).verdict

    assert verdict(holds=False, stand_in="", sure=True) == "contradicted"
    assert verdict(holds=False, stand_in="", sure=False) == "not testable"
    assert verdict(holds=False, stand_in="Another city.", sure=True) == "differs on other data"
    assert verdict(holds=False, stand_in="Another city.", sure=False) == "not testable"
    assert verdict(holds=True, stand_in="", sure=False) == "confirmed"
    assert verdict(holds=True, stand_in="Another city.", sure=False) == "holds on other data"
    few = decided(
        "S.", holds=False, ours="Ours.", quote="s", data="D.", stand_in="A city.", sure=False, reason="Too few events."
    )
    assert (few.verdict, few.reason) == ("not testable", "Too few events.")


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda _: None, r"has none of the files face, fingerprint, finger-vein, with an ending \.npz, \.csv"),
        (lambda to: np.savez(to / "face.npz", a=np.eye(2), b=np.eye(2)), r"face\.npz contains 2 matrices"),
        (
            lambda to: np.savez(to / "face.npz", a=np.eye(99)),
            r"face\.npz: 99 people are compared; an estimate and its interval need",
        ),
        (lambda to: np.savez(to / "face.npz", a=np.ones((200, 200))), r"face\.npz: all scores are the same"),
    ],
)
def test_scores_that_cannot_be_used(tmp_path: Path, write: Callable[[Path], None], message: str) -> None:
    (tmp_path / "scores").mkdir()
    write(tmp_path / "scores")
    with pytest.raises(DataError, match=message):
        matrices(Request(data=tmp_path))


def test_check_ins_of_people_who_are_hardly_there(tmp_path: Path) -> None:
    (tmp_path / "foursquare_global").mkdir()
    pl.DataFrame({"user": [1, 2], "poi": [3, 3], "minute": [1, 2]}).write_parquet(
        tmp_path / "foursquare_global" / "checkins.parquet"
    )
    request = Request(named={"foursquare_global": tmp_path / "foursquare_global"})
    for load in (checkins, visitors):
        with pytest.raises(
            DataError, match="foursquare_global: 0 people have 10 events or more; an estimate and its interval need"
        ):
            load(request)


def test_one_matrix_of_ones_own_beside_those_of_nist(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    for name in ("scores", "nist_bssr1_set1"):
        (tmp_path / name).mkdir()
    np.savez(tmp_path / "nist_bssr1_set1" / "bssr1_set1.npz", face_C=np.eye(3), finger_left=np.eye(4))
    np.savez(tmp_path / "scores" / "fingerprint.npz", mine=rng.normal(0, 1, (105, 105)))
    face, finger = matrices(Request(data=tmp_path))
    assert (face.label, face.matrix.n, finger.label, finger.matrix.n) == ("face", 3, "fingerprint", 105)
    assert "in place of set 3" in face.source


def test_the_list_says_what_the_originals_would_test(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "murakami2021", "--list"]) == Exit.DONE
    text = capsys.readouterr().out
    assert max(len(line) for line in text.splitlines() if line.startswith(" ")) <= 80
    flat = " ".join(text.split())
    for name, tested in ORIGINALS:
        assert f"With --data {name}=FOLDER: {tested}." in flat
    assert main(["reproduce", "murakami2021/figure-6", "--list", "--json"]) == Exit.DONE
    assert json.loads(capsys.readouterr().out)["targets"][0]["originals"] == dict(ORIGINALS)


def test_originals_may_be_named_and_misspelt_ones_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", "murakami2021/figure-6", "--data", f"movielense={tmp_path}"]) == Exit.USAGE
    assert "foursquare_global" in capsys.readouterr().err
    request = Request(data=tmp_path, named={"movielens": tmp_path})
    assert request.original("movielens") == tmp_path
    assert request.original("scores") is None
    assert Request().original("scores") is None
