from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from hushuffle.attacks import linkage
from hushuffle.attacks import results as attack_results
from hushuffle.attacks.attack import link, load_traces
from hushuffle.errors import DataError, InvalidInputError
from hushuffle.model import Bound, Report
from hushuffle.model.traces import Traces

NOISES = (0.5, 4.0, math.inf)


def town(n: int, k: int = 40, length: int = 24) -> Traces:
    """People with four places each, some of which are everybody's."""
    rng = np.random.default_rng(n)
    habits = np.minimum(rng.geometric(0.06, (n, 4)) - 1, k - 1)
    return Traces.of([rng.choice(places, length).tolist() for places in habits], k=k)


def column(study: Report, name: str) -> list[Any]:
    (table,) = study.tables
    return [row[table.columns.index(name)] for row in table.rows]


@pytest.mark.parametrize("score", ["bayes", "plain"])
@pytest.mark.parametrize("events", [1, 2])
@pytest.mark.parametrize("knowledge", ["partial", "maximum"])
def test_no_attack_beats_what_is_certified(knowledge: Any, events: int, score: Any) -> None:
    study = link(town(100), epsilons=NOISES, events=[events], knowledge=knowledge, score=score, repetitions=2, seed=1)
    assert not study.warnings
    wrong, least = column(study, "identification error"), column(study, "certified least error")
    for rate, bound in zip(wrong[1:], least[1:], strict=True):
        # Hoeffding over 200 trials: false alarm exp(-2 * 200 * 0.19**2) = 6e-7 each.
        assert rate >= bound.lower - 0.19
    # No noise is the easiest, much noise as hard as a blind guess.
    assert wrong[0] == min(wrong)
    assert wrong[-1] > 0.9
    assert (
        study.answers[-1] == "None of the 5 attacks succeeded significantly more often than the certified bound allows."
    )


@pytest.mark.parametrize("score", ["cosine", "tf-idf"])
def test_comparing_visits_beats_no_bound_and_needs_reports_that_are_values(score: Any) -> None:
    only: Any = ["randomized-response"]
    study = link(town(100), epsilons=[math.inf, 3.0, 0.5], mechanisms=only, events=[2], score=score, seed=1)
    wrong, least = column(study, "identification error"), column(study, "certified least error")
    for rate, bound in zip(wrong[1:], least[1:], strict=True):
        assert rate >= bound.lower - 0.27  # Hoeffding over 100 trials: exp(-2 * 100 * 0.27**2) = 5e-7 each
    assert wrong[0] == min(wrong) < 0.9
    assert ("score", score) in study.settings
    assert link(town(100), score=score, seed=1).findings  # without noise the mechanism does not matter
    with pytest.raises(
        InvalidInputError, match="`score` must be bayes or plain if a mechanism is not randomized-response"
    ):
        link(town(4), epsilons=[1.0], score=score)


def test_the_study_says_what_was_done() -> None:
    told: list[tuple[str, float]] = []
    study = link(
        town(100),
        source="town",
        epsilons=[1.0, math.inf, 3.0],
        buckets=4,
        known=[None, 4],
        events=[1, 3],
        seed=7,
        progress=lambda what, share: told.append((what, share)),
    )
    assert study.title == "Linkage attack on town"
    settings = dict(study.settings)
    assert (settings["people"], settings["values"], settings["coins"]) == ("100", "40", "reproducible, seed 7")
    assert settings["attacker"] == "partial knowledge, split half"
    assert len(study.tables[0].rows) == 5 * 4
    assert column(study, "mechanism")[:5] == [
        "no noise",
        "randomized response",
        "local hashing (g = 4)",
        "randomized response",
        "local hashing (g = 4)",
    ]
    assert column(study, "epsilon")[:5] == [math.inf, 3.0, 3.0, 1.0, 1.0]
    assert set(column(study, "events known")) == {"all", 4}
    assert set(column(study, "events reported")) == {1, 3}
    assert [chart.key for chart in study.charts] == ["error-by-epsilon", "error-by-events", "detection"]
    assert "measured: randomized response, all known, 1 reported" in [line.label for line in study.charts[0].series]
    assert [finding.bound for finding in study.findings] == column(study, "interval")[:5]
    assert study.answers[0].startswith("Without noise the attacker identifies the sender among 100 people ")
    assert study.answers[1].startswith("With local hashing (g = 4) at epsilon 1 the attacker identifies ")
    assert told[-1] == ("done", 1.0)
    shares = [share for _, share in told]
    assert (np.diff(shares) > -1e-9).all()
    assert all(isinstance(bound, Bound) for bound in column(study, "PSE"))


@pytest.mark.parametrize("score", ["bayes", "plain", "cosine", "tf-idf"])
def test_a_sample_of_people_is_attacked_among_all(score: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted: dict[str, Any] = {"epsilons": [math.inf], "events": [2], "score": score, "seed": 1}
    (everybody,) = column(link(town(300), **wanted), "identification error")
    for module in (linkage, linkage.reports):
        monkeypatch.setattr(module, "ATTACKED", 100)
    monkeypatch.setattr(linkage.reports, "_BLOCK", 64)
    study = link(town(300), **wanted, repetitions=20)
    # 2,000 people, and ties that are broken anew. Hoeffding: false alarm below 2 exp(-2 * 2000 * 0.06**2) = 1e-6.
    assert abs(column(study, "identification error")[0] - everybody) < 0.06
    assert dict(study.settings)["attacked"] == "the reports of 100 people, each compared with all people"
    assert study.answers[0].startswith("Without noise the attacker identifies the sender among 300 people ")


def test_the_same_seed_gives_the_same_study() -> None:
    first, second = (link(town(30), epsilons=[2.0], events=["all"], seed=3) for _ in range(2))
    assert first == second


def test_more_knowledge_and_more_reports_help_the_attacker() -> None:
    study = link(town(100), known=[1, 6, 12], events=[1, 4], seed=1)
    wrong = np.array(column(study, "identification error")).reshape(3, 2)
    assert wrong[2, 1] < wrong[0, 1] - 0.2
    assert wrong[2, 1] < wrong[2, 0] - 0.2
    keys = [chart.key for chart in study.charts]
    assert keys == ["error-by-known", "error-by-events", "detection"]


def test_few_people_short_traces_and_things_that_never_repeat_are_said() -> None:
    walks = Traces.of([*(range(3 * person, 3 * person + 12) for person in range(20)), [0] * 9], k=80)
    study = link(walks)
    assert [warning.key for warning in study.warnings] == ["few-people", "nothing-repeats"]
    assert dict(study.settings)["left out"] == "1 with fewer than 10 events"
    assert dict(study.settings)["coins"] == "cryptographic"
    assert column(study, "PSE") == ["too few people"]
    assert "no attack" not in study.answers[0]
    assert [warning.key for warning in link(walks, split="none", known=[2]).warnings] == ["few-people"]


def test_a_figure_that_is_beaten_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attack_results.Outcome, "impossible", property(lambda _self: True))
    study = link(town(100), seed=1)
    assert [warning.key for warning in study.warnings] == ["bound-broken"]
    assert study.answers[-1] == "1 of 1 attacks succeeded more often than the certified bound allows: see the warning."


def test_one_attack_alone() -> None:
    study = link(town(100), epsilons=[0.5], mechanisms=["randomized-response"], seed=1)
    assert len(study.findings) == 1
    assert len(study.answers) == 2


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"epsilons": []}, "`epsilons` must be a list without repetitions, not empty"),
        ({"events": [1, 1]}, "`events` must be a list without repetitions"),
        ({"mechanisms": ["noise"]}, "`mechanisms` must be randomized-response or local-hashing"),
        ({"score": "best"}, "`score` must be bayes or plain"),
        ({"repetitions": 0}, "`repetitions` must be"),
        ({"at_least": 1}, "`at_least` must be"),
    ],
)
def test_what_cannot_be_asked(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        link(town(4), **asked)


def test_nobody_is_left() -> None:
    with pytest.raises(DataError, match="town: fewer than two people have 99 or more events"):
        link(town(4), source="town", at_least=99)


def test_tables_of_any_users_and_items(tmp_path: Path) -> None:
    frame = pl.DataFrame({"who": ["b", "a", "b", "a"], "where": [7, 10, 9, 7], "when": [10, 3, 9, 20]})
    frame.write_parquet(tmp_path / "visits.parquet")
    frame.write_csv(tmp_path / "visits.csv")
    for name in ("visits.parquet", "visits.csv"):
        walks = load_traces(tmp_path / name, user="who", item="where", time="when")
        assert walks.labels == ("10", "7", "9")
        assert [walks.trace(i).tolist() for i in range(2)] == [[0, 1], [2, 1]]
        assert load_traces(tmp_path / name, user="who", item="where").trace(1).tolist() == [1, 2]
    frame.with_columns(when=pl.Series(["2024-02-01", "2024-01-31", "2023-12-01", "2024-02-02"])).write_csv(
        tmp_path / "dates.csv"
    )
    dated = load_traces(tmp_path / "dates.csv", user="who", item="where", time="when")
    assert [dated.trace(i).tolist() for i in range(2)] == [[0, 1], [2, 1]]


def test_published_formats(tmp_path: Path) -> None:
    pl.DataFrame({"user": [1, 1], "poi": [5, 4], "minute": [2, 1]}).write_parquet(tmp_path / "checkins.parquet")
    assert load_traces(tmp_path, kind="checkins").trace(0).tolist() == [0, 1]
    text = "userId,movieId,rating,timestamp\n1,50,5.0,20\n1,3,4.5,10\n2,3,1.0,15\n"
    (tmp_path / "ratings.csv").write_text(text, encoding="utf-8")
    assert load_traces(tmp_path, kind="ratings").n == 1
    assert load_traces(tmp_path, kind="ratings", stars=0).n == 2


def test_tables_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    path.write_text("user,item\n1,\n1,3\n", encoding="utf-8")
    with pytest.raises(DataError, match="column 'item': 1 of 2 records are missing"):
        load_traces(path)
    with pytest.raises(DataError, match="has no column 'place'"):
        load_traces(path, item="place")
    path.write_text("user,item\n", encoding="utf-8")
    with pytest.raises(DataError, match="no records"):
        load_traces(path)
    with pytest.raises(InvalidInputError, match="`kind` must be table, checkins, ratings"):
        load_traces(path, kind="tracks")  # type: ignore[arg-type]


@pytest.mark.parametrize("events", [1, 2])
def test_sets_are_linked_too(events: int) -> None:
    walks = Traces.of([[(person + step % 2) % 8 for step in range(10)] for person in range(8)], k=8)
    study = link(walks, epsilons=[0.5], mechanisms=["subset-selection"], events=[events], seed=1)
    assert "subset selection (w = 3) at epsilon 0.5" in study.findings[0].sentence
    assert study.findings[0].bound.kind == "estimate"
