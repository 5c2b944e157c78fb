"""Collect views of columns from publishers' files, and estimate from the release."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import hushuffle as hs
from hushuffle.cli import main
from hushuffle.cli.console import Exit
from hushuffle.collection import column_views
from hushuffle.collection.column_views import collect_views, estimate_views, is_of_views
from hushuffle.collection.request import Request
from hushuffle.errors import DataError, SpecificationError
from hushuffle.specification import parse
from hushuffle.tables.sketch_files import save_filter

NAMES = ("tv", "web", "radio")
VIEWS = '{ shows = "union" }, { shows = "union", sets_of = 1 }, { shows = "union", sets_of = 2 }'
TEXT = """
population = {{ people = 9000, audiences = {{ tv = 3000, web = 2000, radio = 500 }}, bits = 9001, views = [{views}] }}
randomizer = {{ kind = "randomized-response", epsilon = "inf" }}
shuffler = {{ kind = "augmented", trusted = true, each = {{ kind = "discrete-gaussian", center = 200, sigma = 20.0 }} }}
targets = {{ delta = 1e-6{target} }}
"""
ENCODER = hs.BloomEncoder(bits=9001, key=bytes(range(32)))
AUDIENCES = {"tv": range(3000), "web": range(2000, 4000), "radio": range(3500, 4000)}
TRUTH = {
    "any of the 3": 4000,
    "tv": 3000,
    "web": 2000,
    "radio": 500,
    "tv or web": 4000,
    "tv or radio": 3500,
    "web or radio": 2000,
    "tv and web": 1000,
    "tv and radio": 0,
    "web and radio": 500,
    "tv, web and radio": 0,
    "tv alone": 2000,
    "web alone": 500,
    "radio alone": 0,
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the file of each publisher."""
    monkeypatch.setattr(column_views, "CHUNK", 1024)
    for name, people in AUDIENCES.items():
        save_filter(tmp_path / f"{name}.npz", ENCODER.encode(list(people)))
    return tmp_path


def request_for(folder: Path, **other: str) -> Request:
    files = {name: f"{name}.npz" for name in NAMES} | other
    return Request(sources=[f"{name}={folder / file}" for name, file in files.items()])


def study(views: str = VIEWS, target: str = "") -> hs.specification.Specification:
    return parse(TEXT.format(views=views, target=target))


def test_estimates_of_a_collection(folder: Path) -> None:
    released = collect_views(study(), out=folder / "out", request=request_for(folder))
    assert released.central == hs.bloom.views_epsilon(released.design, delta=1e-6)
    assert [path.name for path in (folder / "out").iterdir()] == ["manifest.json"]
    assert is_of_views(folder / "out")
    found = estimate_views(folder / "out")
    assert found.refused == {}
    answers = {question.label: answer for question, answer in found.answers.items()}
    assert answers.keys() == TRUTH.keys()
    for label, answer in answers.items():
        assert abs(answer.estimate - TRUTH[label]) < 6 * answer.standard_error
    unions = {answer.publishers: answer.estimate for answer in answers.values() if answer.question == "reach"}
    for small, below in unions.items():
        assert all(below <= above for large, above in unions.items() if set(small) <= set(large))


def test_counts_are_those_of_all_columns_with_dummies(folder: Path) -> None:
    """Without random dummies, the counts in chunks are those of a plain loop over the columns."""
    exact = '{ shows = "patterns", each = { kind = "own", numbers = [7], probabilities = [1.0] } }, { shows = "union" }'
    collect_views(study(exact), out=folder / "out", request=request_for(folder))
    columns = [ENCODER.encode(list(AUDIENCES[name])).columns().tolist() for name in NAMES]
    expected = [7] * 8
    for bits in zip(*columns, strict=True):
        expected[sum(bit << place for place, bit in enumerate(bits))] += 1
    document = json.loads((folder / "out" / "manifest.json").read_text(encoding="utf-8"))
    assert document["counts"][0] == expected


def test_contacts_in_mapped_files(folder: Path) -> None:
    contacts = np.bincount(ENCODER.positions([*range(1000), *range(300)]).ravel(), minlength=9001)
    for name in NAMES:
        np.save(folder / f"{name}.npy", contacts.astype(np.uint8))
    views = '{ shows = "union" }, { shows = "contacts", most = 6, publishers = ["tv", "web"] }'
    files = {name: f"{name}.npy" for name in ("tv", "web")}
    collect_views(study(views), out=folder / "out", request=request_for(folder, **files))
    answers = {question.label: answer for question, answer in estimate_views(folder / "out").answers.items()}
    for label, people in (("1 contact", 0), ("2 contacts", 700), ("4 contacts", 300), ("6 or more contacts", 0)):
        assert abs(answers[label].estimate - people) < 6 * answers[label].standard_error
    with pytest.raises(DataError, match="web sent filters of bits"):
        collect_views(study(views), out=folder / "no", request=request_for(folder, tv="tv.npy"))
    np.save(folder / "web.npy", contacts)
    with pytest.raises(DataError, match=r"must have shape \(9001,\) and type uint8 or uint16"):
        collect_views(study(views), out=folder / "no", request=request_for(folder, **files))
    assert not (folder / "no").exists()


def test_what_is_refused(folder: Path) -> None:
    others = {
        "flipped": ENCODER.encode(["a"]).flip(randomizer=hs.BitFlipping(width=1, p=0.1), rng=hs.reproducible(1)),
        "key": hs.BloomEncoder(bits=9001, key=bytes(32)).encode(["a"]),
        "bits": hs.BloomEncoder(bits=9000, key=bytes(range(32))).encode(["a"]),
    }
    for name, sketch in others.items():
        save_filter(folder / f"{name}.npz", sketch)
    for file, words in (("flipped", "is flipped"), ("key", "same key"), ("bits", "has 9,000 bits"), ("x", "not exist")):
        with pytest.raises(DataError, match=words):
            collect_views(study(), out=folder / "no", request=request_for(folder, web=f"{file}.npz"))
    for sources in ([], ["tv=tv.npz"], ["tv.npz", "web=web.npz", "radio=radio.npz"]):
        with pytest.raises(DataError, match="file of each publisher once"):
            collect_views(study(), out=folder / "no", request=Request(sources=sources))
    with pytest.raises(DataError, match=r"above targets\.epsilon = 0\.01: no filters were read"):
        collect_views(study(target=", epsilon = 0.01"), out=folder / "no", request=request_for(folder))
    plain = study().plain()
    del plain["population"]["views"]
    flips = {"randomizer": {"kind": "bit-flipping", "p": 0.1}, "shuffler": {"kind": "uniform"}}
    with pytest.raises(SpecificationError, match='must be "augmented" to collect'):
        collect_views(type(study()).model_validate({**plain, **flips}), out=folder / "no", request=Request())
    assert not (folder / "no").exists()


@pytest.mark.parametrize("content", ["short", "cut", "pickled", "zipped"])
def test_damaged_files_of_contacts(folder: Path, content: str) -> None:
    np.save(folder / "tv.npy", np.zeros(9001, dtype=np.uint8))
    whole = (folder / "tv.npy").read_bytes()
    objects = np.array([None] * 9001, dtype=object)
    if content == "pickled":
        np.save(folder / "tv.npy", objects, allow_pickle=True)
    else:
        parts = {"short": whole[:20], "cut": whole[:-1], "zipped": (folder / "web.npz").read_bytes()}
        (folder / "tv.npy").write_bytes(parts[content])
    with pytest.raises(DataError, match=r"tv\.npy is not an array of NumPy"):
        collect_views(study(), out=folder / "no", request=request_for(folder, tv="tv.npy"))


def test_edited_releases(folder: Path) -> None:
    collect_views(study(), out=folder / "out", request=request_for(folder))
    path = folder / "out" / "manifest.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    for change in ({"counts": [[1]]}, {"counts": [[-1], *document["counts"][1:]]}, {"counts": 3}):
        path.write_text(json.dumps({**document, **change}), encoding="utf-8")
        with pytest.raises(DataError, match="contradict each other"):
            estimate_views(folder / "out")
    path.write_text(json.dumps({**document, "specification": "x = 1"}), encoding="utf-8")
    with pytest.raises(DataError, match="specification in"):
        estimate_views(folder / "out")


def test_commands(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "study.toml").write_text(TEXT.format(views=VIEWS, target=""), encoding="utf-8")
    inputs = [f"{name}={folder / name}.npz" for name in NAMES]
    out = str(folder / "out")
    assert main(["collect", str(folder / "study.toml"), "--out", out, "--input", *inputs]) == Exit.DONE
    assert "Counted 9,001 columns of 3 publishers in 7 views." in capsys.readouterr().out
    assert main(["estimate", out, "--out", str(folder / "answers.json")]) == Exit.DONE
    assert "tv and web: " in capsys.readouterr().out
    answers = json.loads((folder / "answers.json").read_text(encoding="utf-8"))["answers"]
    assert {row["label"] for row in answers} == TRUTH.keys()
    assert main(["estimate", out, "--json"]) == Exit.DONE
    assert json.loads(capsys.readouterr().out)["content"] == "estimate of reach"
    assert main(["estimate", out, "--simplex"]) == Exit.USAGE
    for options in (["--batches"], ["--budget", "people.toml"], ["--engine", "spark"]):
        assert main(["collect", str(folder / "study.toml"), "--out", out, *options]) == Exit.USAGE
        assert "in one run on this machine. A budget counts only reports" in capsys.readouterr().err
