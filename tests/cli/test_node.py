"""`hushuffle node`: keys, codes, and services that cannot start."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cryptography import x509

from hushuffle.cli import main
from hushuffle.cli.console import Exit


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_keys_are_private_and_never_overwritten(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["node", "keys", "scrambler-1", "target-1-1", "--out", "keys"]) == Exit.DONE
    secret = json.loads((folder / "keys" / "scrambler-1.keys").read_text())
    assert (folder / "keys" / "scrambler-1.keys").stat().st_mode & 0o777 == 0o600
    assert main(["node", "keys", "scrambler-1", "--out", "keys"]) == Exit.FAILED
    said = capsys.readouterr()
    assert "keys are never overwritten" in said.err
    public = (folder / "keys" / "scrambler-1.public.json").read_text()
    assert not any(value in said.out + said.err + public for value in secret.values())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["keys", "relay", "--out", "keys"], "scrambler-N, target-N-N, result or issuer"),
        (["keys", "Target-1-1", "--out", "keys"], "scrambler-N, target-N-N, result or issuer"),
        (["keys", "issuer", "--steps", "0", "--out", "keys"], "--steps must be from 1 to 1,000"),
        (["codes", "0", "--out", "codes"], "must be from 1 to"),
        (["start", "none.toml"], "none.toml: 1 problem"),
        (["certs", "Ann", "--out", "tls"], "`names` must be of lower-case letters"),
        (["certs", "authority", "--out", "tls"], "and not 'authority'"),
        (["certs", "ann", "--days", "0", "--out", "tls"], "`days`"),
    ],
)
def test_wrong_use_writes_nothing(
    arguments: list[str], words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["node", *arguments]) in (Exit.USAGE, Exit.FAILED)
    assert words in " ".join(capsys.readouterr().err.split())
    assert not list(folder.iterdir())


def test_certificates_are_of_one_authority_and_never_overwritten(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["node", "certs", "a", "b", "a", "--out", "tls"]) == Exit.DONE
    assert main(["node", "certs", "c", "--out", "tls", "--days", "1"]) == Exit.DONE
    assert capsys.readouterr().out == "Wrote 6 files into tls\nWrote 2 files into tls\n"
    authority = x509.load_pem_x509_certificate((folder / "tls" / "authority.pem").read_bytes())
    for name in "abc":
        x509.load_pem_x509_certificate((folder / "tls" / f"{name}.pem").read_bytes()).verify_directly_issued_by(
            authority
        )
        assert (folder / "tls" / f"{name}.key").stat().st_mode & 0o777 == 0o600
    assert main(["node", "certs", "c", "--out", "tls"]) == Exit.FAILED
    assert "c.pem exists, and keys are never overwritten." in capsys.readouterr().err
    (folder / "tls" / "authority.pem").write_bytes((folder / "tls" / "a.pem").read_bytes())
    assert main(["node", "certs", "d", "--out", "tls"]) == Exit.FAILED
    assert "do not belong together" in capsys.readouterr().err
    (folder / "tls" / "authority.key").unlink()
    assert main(["node", "certs", "d", "--out", "tls"]) == Exit.FAILED
    assert "exists without authority.key" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ('role = "target"\nname = "target-1-1"\nlisten = "127.0.0.1:1"', "keys: must be set for every role"),
        ('role = "relay"\nname = "relay"\nlisten = "127.0.0.1:1"', "gateway: must be given for a relay"),
        ('role = "relay"\nname = "Relay"\nlisten = "nowhere"\ngateway = "http://a"', 'listen: must be "host:port"'),
        ('role = "source"\nname = "a"\nlisten = "127.0.0.1:1"', "role"),
    ],
)
def test_settings_that_do_not_fit_are_refused(
    settings: str, words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "service.toml").write_text(settings + "\n")
    assert main(["node", "start", "service.toml"]) == Exit.USAGE
    said = capsys.readouterr().err
    assert words in " ".join(said.split())
    assert "Traceback" not in said
