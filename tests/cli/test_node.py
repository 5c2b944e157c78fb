"""`hushuffle node`: certificates, nodes that cannot start, nodes that do not answer."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
import tomli_w

from hushuffle.cli import main
from hushuffle.cli.console import Exit
from hushuffle.network.nodes.document import RunDocument, Server
from hushuffle.network.nodes.seals import PublicSealKey
from hushuffle.network.setup import draw_up
from hushuffle.queries import parse_plan
from hushuffle.randomness import reproducible

PLAN = """
[query]
kind = "aggregate"
generated = { people = 100 }
columns = { age = 4 }
grouping_sets = [["age"]]
partitions = 2
[traffic]
sigma = 0.2
[targets]
delta = 0
[network]
patience = 20
"""
NAMES = ["result", "compute-1-1", "compute-1-2", "ann", "bob"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def secrets(folder: Path) -> list[str]:
    """Return every line that nobody must see."""
    lines = [path.read_text().splitlines() for ending in ("key", "seal") for path in folder.rglob(f"*.{ending}")]
    return [line for own in lines for line in own if line and not line.startswith("-----")]


def drawn(folder: Path) -> RunDocument:
    """Write a run's document whose result nobody serves, with certificates for all; return the document."""
    assert main(["node", "certs", *NAMES, "--out", "identities"]) == Exit.DONE
    with socket.create_server(("127.0.0.1", 0)) as own:
        port = own.getsockname()[1]

    def server(name: str) -> Server:
        seal = PublicSealKey.of((folder / "identities" / f"{name}.seal.pub").read_text().strip()).text
        return Server(address=f"127.0.0.1:{port}", seal=seal)

    specification = parse_plan(PLAN)
    document = draw_up(specification, specification.plan(2), ["ann", "bob"], server=server, rng=reproducible(1))
    (folder / "run.json").write_text(document.text, encoding="utf-8")
    return document


def config(folder: Path, *nodes: str, **more: object) -> str:
    table = {"document": "run.json", "nodes": list(nodes), "identities": "identities", **more}
    (folder / "node.toml").write_text(tomli_w.dumps(table), encoding="utf-8")
    return "node.toml"


def test_certificates(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["node", "certs", "a", "b", "a", "--out", "keys"]) == Exit.DONE
    assert capsys.readouterr().out == "Wrote 10 files for 2 nodes into keys\n"
    assert main(["node", "certs", "c", "--out", "keys", "--days", "1"]) == Exit.DONE
    said = capsys.readouterr()
    assert said.out == "Wrote 4 files for 1 nodes into keys\n"
    assert main(["node", "certs", "c", "--out", "keys"]) == Exit.FAILED
    assert "c.pem exists, and a node's files are never overwritten." in capsys.readouterr().err
    assert all((path.stat().st_mode & 0o777) == 0o600 for path in (folder / "keys").glob("*.key"))
    assert all((path.stat().st_mode & 0o777) == 0o600 for path in (folder / "keys").glob("*.seal"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "pass the names of nodes, or the --document of a run"),
        (["Ann"], "`names` must be of lower-case letters"),
        (["ann.example.org"], "`names` must be of lower-case letters"),
        (["authority"], "and not 'authority'"),
        (["ann", "--days", "0"], "`days`"),
    ],
)
def test_certificates_that_are_not_made(
    arguments: list[str], words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["node", "certs", *arguments, "--out", "keys"]) == Exit.USAGE
    assert words in capsys.readouterr().err
    assert not list(folder.iterdir())


def test_certificates_for_all_nodes_of_a_document(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drawn(folder)
    assert main(["node", "certs", "more", "ann", "--document", "run.json", "--out", "all"]) == Exit.DONE
    assert "for 6 nodes into all" in capsys.readouterr().out
    assert {path.stem for path in (folder / "all").glob("*.pem")} == {*NAMES, "more", "authority"}


def test_nobody_is_there(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drawn(folder)
    assert main(["node", "health", config(folder, "result", "compute-1-1", "ann")]) == Exit.FAILED
    said = capsys.readouterr()
    answers = [json.loads(line) for line in said.out.splitlines()[1:]]
    assert [one["node"] for one in answers] == ["result", "compute-1-1"]
    assert {one["failure"].split(" ", 1)[1] for one in answers} == {"could not be reached in time."}
    assert main(["node", "health", config(folder, "ann")]) == Exit.DONE
    assert capsys.readouterr().out == ""
    assert not any(line in said.out + said.err for line in secrets(folder))


@pytest.mark.parametrize(
    ("nodes", "more", "code", "words"),
    [
        ([], {}, Exit.USAGE, "nodes"),
        (["ann", "ann"], {}, Exit.USAGE, "must be different names"),
        (["ann"], {"document": "none.json"}, Exit.FAILED, "none.json cannot be read"),
        (["dora"], {}, Exit.FAILED, "dora.pem cannot be read"),
        (["ann"], {}, Exit.FAILED, "needs [records]"),
        (["ann"], {"identities": "none"}, Exit.FAILED, "ann.pem cannot be read"),
        (["result"], {"listen": {"result": "nowhere"}}, Exit.FAILED, "result cannot listen at nowhere"),
        (["result"], {"keys": {"result": "identities/ann.pem"}}, Exit.FAILED, "holds a secret key"),
        (["result"], {"seals": {"result": "env:NO_SUCH_SEAL"}}, Exit.FAILED, "NO_SUCH_SEAL is not set"),
        (["result"], {"seals": {"result": "identities/ann.seal"}}, Exit.FAILED, "its seal key differs"),
        (["ann"], {"secret": "x"}, Exit.USAGE, "secret"),
        (
            ["ann"],
            {"records": {"data": "ann.csv", "coins": "identities/ann.seal", "state": "s"}},
            Exit.FAILED,
            "ann.csv",
        ),
    ],
)
def test_nodes_that_cannot_start(
    nodes: list[str],
    more: dict[str, object],
    code: Exit,
    words: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    drawn(folder)
    (folder / "identities" / "ann.pem").chmod(0o644)
    assert main(["node", "start", config(folder, *nodes, **more)]) == code
    said = capsys.readouterr()
    assert words in said.err
    assert "Traceback" not in said.err
    assert not any(line in said.out + said.err for line in secrets(folder))


@pytest.mark.parametrize("name", ["ann", "result", "compute-1-1"])
@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"sigma": 0.2', '"sigma": 0.0', "sigma of the step 'send by age' differ from the plan"),
        ("delta = 0.0", "delta = 0.0\\nepsilon = 1.0", "above targets.epsilon = 1"),
        ("partitions = 2", "partitions = two", "the plan in the run's document: 1 problem"),
    ],
)
def test_every_role_refuses_a_document_that_does_not_keep_its_plan(
    name: str, old: str, new: str, words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn(folder)
    text = (folder / "run.json").read_text()
    assert old in text
    (folder / "run.json").write_text(text.replace(old, new))
    assert main(["node", "start", config(folder, name)]) in (Exit.FAILED, Exit.USAGE)
    said = capsys.readouterr().err
    assert words in said
    assert "Traceback" not in said


def test_a_configuration_that_is_not_there(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["node", "start", "none.toml"]) == Exit.USAGE
    assert main(["node", "health", "none.toml"]) == Exit.USAGE
    assert capsys.readouterr().err.count("none.toml: 1 problem") == 2
    assert not list(folder.iterdir())


def test_a_source_that_reaches_nobody_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drawn(folder)
    text = (folder / "run.json").read_text().replace('"collect": 60.0', '"collect": 0.1')
    (folder / "run.json").write_text(text)
    (folder / "ann.csv").write_text("age\n3\n")
    records = {"data": "ann.csv", "coins": "identities/ann.seal", "state": "state"}
    code = main(["node", "start", config(folder, "ann", records=records, status="status.json")])
    said = capsys.readouterr()
    assert code == Exit.FAILED
    assert "hushuffle: ann: none of its 1 messages was accepted (slow)" in said.err
    status = json.loads((folder / "status.json").read_text())
    assert status["nodes"]["ann"]["rejected"] == {"slow": 1}
    (state,) = (folder / "state").iterdir()
    assert (state.stat().st_mode & 0o777) == 0o600
    assert not any(line in said.out + said.err + json.dumps(status) for line in secrets(folder))


@pytest.mark.parametrize(
    ("policy", "code", "words"),
    [
        ({"max_epsilons": 1}, Exit.USAGE, "policy.max_epsilons"),
        ({"max_epsilon": 1.0}, Exit.FAILED, "epsilon is up to 2.198 at delta = 0, above max_epsilon = 1"),
        ({"budget": 2.0}, Exit.FAILED, "of a budget of epsilon 2"),
        ({"min_batch": 10}, Exit.FAILED, "has no scrambler, min_batch is 10"),
        ({"authorities": ["ab:cd"]}, Exit.USAGE, "must be a SHA-256 fingerprint"),
    ],
)
def test_what_the_policy_of_a_source_does_not_allow_is_not_answered(
    policy: dict[str, object], code: Exit, words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drawn(folder)
    (folder / "ann.csv").write_text("age\n3\n")
    records = {"data": "ann.csv", "coins": "identities/ann.seal", "state": "state"}
    assert main(["node", "start", config(folder, "ann", records=records, policy=policy)]) == code
    assert words in capsys.readouterr().err
    assert not (folder / "state").exists()


def test_a_node_that_fails_says_why(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    drawn(folder)
    text = (folder / "run.json").read_text().replace('"collect": 60.0', '"collect": 0.1')
    (folder / "run.json").write_text(text.replace('"patience": 20.0', '"patience": 0.1'))
    assert main(["node", "start", config(folder, "result", result="result.json")]) == Exit.FAILED
    said = capsys.readouterr()
    assert "hushuffle: result: " in said.err
    assert "compute-1-1, compute-1-2" in said.err
    assert not (folder / "result.json").exists()
    assert not any(line in said.out + said.err for line in secrets(folder))
