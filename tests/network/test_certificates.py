"""Certificates for trials: nothing is overwritten, secrets are private, names are those of documents."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from hushuffle.errors import DataError, InvalidInputError
from hushuffle.network.nodes.identities import read_identity
from hushuffle.network.nodes.seals import PublicSealKey, SealKey
from hushuffle.network.setup import make_certificates


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_every_node_gets_what_it_needs(tmp_path: Path) -> None:
    out = tmp_path / "new" / "keys"
    made = make_certificates(["result", "source-1", "result"], out=out)
    endings = (".pem", ".key", ".seal", ".seal.pub")
    expected = {f"{name}{ending}" for name in ("result", "source-1") for ending in endings}
    assert {path.name for path in made} == {*expected, "authority.pem", "authority.key"} == set(contents(out))
    assert len(made) == len(set(made))
    for path in out.iterdir():
        mode = stat.S_IMODE(path.stat().st_mode)
        assert path.suffix not in (".key", ".seal") or mode == 0o600
    assert stat.S_IMODE(out.stat().st_mode) == 0o700
    identity = read_identity(
        "result", certificate=out / "result.pem", authority=out / "authority.pem", key=str(out / "result.key")
    )
    identity.server()
    identity.client()
    public = PublicSealKey.of((out / "result.seal.pub").read_text().strip())
    assert SealKey.of((out / "result.seal").read_text()).public.text == public.text


def test_an_authority_is_used_again_and_nothing_is_overwritten(tmp_path: Path) -> None:
    make_certificates(["a"], out=tmp_path)
    before = contents(tmp_path)
    made = make_certificates(["b"], out=tmp_path)
    assert sorted(path.name for path in made) == ["b.key", "b.pem", "b.seal", "b.seal.pub"]
    after = contents(tmp_path)
    assert {name: after[name] for name in before} == before
    for name in ("a", "b"):
        read_identity(
            name,
            certificate=tmp_path / f"{name}.pem",
            authority=tmp_path / "authority.pem",
            key=str(tmp_path / f"{name}.key"),
        ).server()


@pytest.mark.parametrize("ending", [".pem", ".key", ".seal", ".seal.pub"])
def test_no_file_of_a_node_is_overwritten_and_nothing_is_half_done(ending: str, tmp_path: Path) -> None:
    (tmp_path / f"b{ending}").write_text("mine")
    with pytest.raises(DataError, match=f"b{ending} exists"):
        make_certificates(["a", "b"], out=tmp_path)
    assert contents(tmp_path) == {f"b{ending}": b"mine"}


@pytest.mark.parametrize("name", ["Alice", "a.example", "../up", "", "-a", "a b", "a" * 64, "\u00e4", "authority"])
def test_names_that_no_document_takes_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="`names`"):
        make_certificates(["good", name], out=tmp_path / "keys")
    assert not (tmp_path / "keys").exists()


def test_days_must_be_positive(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="`days`"):
        make_certificates(["a"], out=tmp_path / "keys", days=0)
    assert not (tmp_path / "keys").exists()


def test_an_authority_without_its_key_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "authority.pem").write_text("somebody else's")
    with pytest.raises(DataError, match=r"exists without authority\.key"):
        make_certificates(["a"], out=tmp_path)
    assert contents(tmp_path) == {"authority.pem": b"somebody else's"}


def test_a_damaged_authority_is_said_to_be_so(tmp_path: Path) -> None:
    make_certificates(["a"], out=tmp_path)
    (tmp_path / "authority.pem").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="cannot be used: they are damaged"):
        make_certificates(["b"], out=tmp_path)
    (tmp_path / "authority.key").chmod(0o644)
    with pytest.raises(DataError, match="chmod 600"):
        make_certificates(["b"], out=tmp_path)
    assert not list(tmp_path.glob("b.*"))


def test_a_folder_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="cannot be used"):
        make_certificates(["a"], out=tmp_path / "file")
