"""Only sums leave: from records to sums.json, and back to frequencies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from hushuffle.assessment.deployment import assess
from hushuffle.collection import collect as publishing
from hushuffle.collection import release as module
from hushuffle.collection.collect import Collected, collect
from hushuffle.collection.estimate import tally_columns, tally_reports
from hushuffle.collection.request import Keys
from hushuffle.errors import DataError, SpecificationError
from hushuffle.estimation import heavy_hitters
from hushuffle.model import Bound
from hushuffle.specification import Specification, parse
from key_memory import new_key, no_figure

RANDOMIZERS = (
    '{ kind = "unary-encoding", epsilon = 4.0 }',
    '{ kind = "unary-encoding", epsilon = 4.0, encoding = "symmetric" }',
    '{ kind = "randomized-response", epsilon = 3.0 }',
)


def survey(randomizer: str = RANDOMIZERS[0], population: str = "", more: str = "") -> Specification:
    people = population or '{ data = "people.csv", column = "answer", categories = ["a", "b", "c"] }'
    return parse(f"""
        population = {people}
        randomizer = {randomizer}
        shuffler = {{ kind = "secure-aggregation"{more} }}
        targets = {{ delta = 1e-6 }}
    """)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "central_of", lambda *_: Bound.exact(1.0, unit="nats"))
    monkeypatch.setattr(publishing, "rounds_of", no_figure)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    answers = np.repeat(["a", "b", "c"], [3_000, 2_000, 1_000])
    pl.DataFrame({"id": np.arange(6_000), "answer": answers}).write_csv(tmp_path / "people.csv")
    new_key(tmp_path / "my.key")
    return tmp_path


def run(folder: Path, randomizer: str = RANDOMIZERS[0], *, out: str = "out", coins: str = "", **more: Any) -> Collected:
    return collect(survey(randomizer, more=coins), out=folder / out, base_folder=folder, **more)


@pytest.mark.parametrize("randomizer", RANDOMIZERS)
def test_no_report_leaves_and_the_sums_are_estimated(folder: Path, randomizer: str) -> None:
    made = run(folder, randomizer)
    assert sorted(path.name for path in (folder / "out").iterdir()) == ["manifest.json", "sums.json"]
    assert made.files == (folder / "out" / "sums.json", folder / "out" / "manifest.json")
    written = json.loads((folder / "out" / "sums.json").read_text())
    assert written["people"] == 6_000
    assert written["dummies"] == 0
    assert len(written["counts"]) == 3
    for source in (folder / "out", folder / "out" / "sums.json"):
        found = tally_reports([source]).estimate()
        assert float(np.abs((found.frequencies - [1 / 2, 1 / 3, 1 / 6]) / found.standard_errors).max()) < 5.5


def test_batches_add_up(folder: Path) -> None:
    for number in (1, 2):
        run(folder, out=f"all/batch-{number}")
    (whole,) = tally_columns([folder / "all"]).values()
    parts = [json.loads((folder / "all" / f"batch-{number}" / "sums.json").read_text()) for number in (1, 2)]
    assert whole.manifest.people == 12_000
    assert whole.counts.counts.tolist() == np.sum([part["counts"] for part in parts], axis=0).tolist()


def test_a_key_repeats_the_sums(folder: Path) -> None:
    keys = Keys(file=folder / "my.key", ids="id")
    first, again = run(folder, keys=keys), run(folder, out="again", keys=keys)
    assert not first.repeated
    assert again.repeated
    one, two = (json.loads((folder / out / "sums.json").read_text())["counts"] for out in ("out", "again"))
    assert one == two
    other = run(folder, out="fresh", keys=Keys(file=folder / "my.key", ids="id", round=1))
    assert not other.repeated
    assert json.loads((folder / "fresh" / "sums.json").read_text())["counts"] != one


@pytest.mark.parametrize("kind", ["local-hashing", "subset-selection"])
def test_what_cannot_be_added_up_is_a_problem_of_the_file(kind: str) -> None:
    with pytest.raises(SpecificationError, match=rf'kind: must be a shuffler that supports reports of kind "{kind}"'):
        survey(f'{{ kind = "{kind}", epsilon = 1.0 }}', "{ n = 900, k = 9 }")


def test_a_report_says_who_adds_up_and_what_nobody_sees() -> None:
    report = assess(survey('{ kind = "unary-encoding", epsilon = 2.0 }', "{ n = 20, k = 4 }"))
    figures = {finding.question: finding.figure for finding in report.findings}
    assert figures["central-dp"].kind == "bracket"
    assert figures["vulnerability"].kind == "upper"
    assert figures["identity-information"].kind == "upper"
    assert next(row for row in report.findings if row.question == "local-dp").adversary == "All servers, colluding"
    bare = assess(survey('{ kind = "unary-encoding", epsilon = "inf" }', "{ n = 20, k = 4 }"))
    assert "if all servers collude, nothing protects your answer" in " ".join(row.sentence for row in bare.findings)
    assert not report.unanswered
    assert report.statement is not None
    words = " ".join([*report.statement.threats, *report.statement.respondents])
    assert "add reports up (name them in [statement]) are trusted not to combine their secret shares" in words
    assert "If all servers collude, the noise on the device limits the change of odds to a factor" in words
    assert "Servers add up the messages of all 20 people; none of them can read yours alone." in words
    assert "shuffler" not in words
    assert report.statement.scenarios[-1].case == "All servers collude"


COINS = ", coins = 4000, servers = 3"


def test_coins_of_servers_are_in_the_sums_and_out_of_the_estimates(folder: Path) -> None:
    for number in (1, 2):
        run(folder, RANDOMIZERS[1], out=f"all/batch-{number}", coins=COINS)
    written = json.loads((folder / "all" / "batch-1" / "sums.json").read_text())
    assert written["server_coins"] == 12_000
    assert min(written["counts"]) > 5_000
    (whole,) = tally_columns([folder / "all"]).values()
    assert whole.manifest.coins == 24_000
    assert whole.protocol.shuffler.all_coins == 24_000
    found = whole.estimate()
    assert float(np.abs((found.frequencies - [1 / 2, 1 / 3, 1 / 6]) / found.standard_errors).max()) < 5.5
    run(folder, RANDOMIZERS[1], out="quiet")
    assert found.variance_intercept > 2 * tally_reports([folder / "quiet"]).estimate().variance_intercept


def test_a_key_repeats_the_coins(folder: Path) -> None:
    keys = Keys(file=folder / "my.key", ids="id")
    for out in ("out", "again"):
        run(folder, RANDOMIZERS[1], out=out, keys=keys, coins=COINS)
    one, two = (json.loads((folder / out / "sums.json").read_text())["counts"] for out in ("out", "again"))
    assert one == two


def test_sums_whose_coins_are_missing_are_refused(folder: Path) -> None:
    run(folder, RANDOMIZERS[1], coins=COINS)
    file = folder / "out" / "sums.json"
    document = json.loads(file.read_text())
    for coins in (0, 11_999, 5):
        file.write_text(json.dumps({**document, "server_coins": coins, "counts": [1, 1, 1]}))
        with pytest.raises(DataError, match="`coins` and `specification` contradict each other"):
            tally_reports([file])
    file.write_text(json.dumps({**document, "server_coins": "many"}))
    with pytest.raises(DataError, match="the file may have been edited"):
        tally_reports([file])


@pytest.mark.parametrize(
    ("randomizer", "more", "problem"),
    [
        (RANDOMIZERS[2], ", coins = 5", 'shuffler.coins: must be 0 with reports of kind "randomized-response", got 5.'),
        (RANDOMIZERS[0], ", servers = 2, honest = 3", "shuffler.honest: must be an integer from 0 to 2, got 3."),
        (RANDOMIZERS[0], ", honest = 3", "shuffler.honest: must be an integer from 0 to 2, got 3."),
        (
            RANDOMIZERS[2],
            ", laplace = 2.5",
            'shuffler.laplace: must be 0 with reports of kind "randomized-response", got 2.5.',
        ),
        (RANDOMIZERS[0], ", laplace = 0.05", "shuffler.laplace: must be 0, or from 0.1 to 10,000, got 0.05."),
        (RANDOMIZERS[0], ", coins = -1", "shuffler.coins: must be greater than or equal to 0, got -1."),
    ],
)
def test_coins_that_make_no_sense_are_problems_of_the_file(randomizer: str, more: str, problem: str) -> None:
    with pytest.raises(SpecificationError) as caught:
        survey(randomizer, "{ n = 900, k = 9 }", more)
    assert problem in str(caught.value)


LAPLACE = ", laplace = 900"


def test_laplace_noise_of_servers_is_in_the_sums_and_in_the_errors(folder: Path) -> None:
    keys = Keys(file=folder / "my.key", ids="id")
    for out in ("out", "again"):
        run(folder, RANDOMIZERS[1], out=out, keys=keys, coins=LAPLACE)
    one, two = (json.loads((folder / out / "sums.json").read_text())["counts"] for out in ("out", "again"))
    assert one == two
    whole = tally_reports([folder / "out"])
    assert whole.protocol.shuffler.sum_noise is not None
    found = whole.estimate()
    assert float(np.abs((found.frequencies - [1 / 2, 1 / 3, 1 / 6]) / found.standard_errors).max()) < 11
    law = whole.protocol.shuffler.sum_noise
    assert found.variance_intercept > law.variance / whole.manifest.people**2
    threshold = heavy_hitters(found, protocol=whole.protocol, level=0.05).threshold
    assert threshold * whole.manifest.people > 2 * law.variance**0.5
    with pytest.raises(DataError, match="Each release has its own dummies or noise"):
        tally_reports([folder / "out", folder / "again"])


def test_only_sums_with_laplace_noise_may_be_negative(folder: Path) -> None:
    for out, coins, refused in (("noisy", LAPLACE, False), ("quiet", "", True)):
        run(folder, RANDOMIZERS[1], out=out, coins=coins)
        file = folder / out / "sums.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), "counts": [-5, 10**6, 3]}))
        if refused:
            with pytest.raises(DataError, match="a support count is below 0, or exceeds the number of reports"):
                tally_reports([file])
        else:
            assert tally_reports([file]).counts.counts.tolist() == [-5, 10**6, 3]
