from __future__ import annotations

import os
from pathlib import Path

import pytest

from hushuffle.errors import DataError
from hushuffle.files.secret_keys import key_in_environment, key_in_file

DIGITS = "0123456789abcdef" * 4


def written(tmp_path: Path, text: str, mode: int = 0o600) -> Path:
    path = tmp_path / "reach.key"
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


@pytest.mark.parametrize("text", [DIGITS, f"{DIGITS.upper()}\n", f"  {DIGITS}{DIGITS}\r\n"])
def test_a_key_in_a_file(tmp_path: Path, text: str) -> None:
    assert key_in_file(written(tmp_path, text)) == bytes.fromhex(text.strip())
    assert key_in_file(written(tmp_path, text, mode=0o400)) == bytes.fromhex(text.strip())


@pytest.mark.parametrize("text", ["", DIGITS[:-2], DIGITS + "0", DIGITS[:-1] + "g", f"0x{DIGITS}", "é" * 80])
def test_what_is_no_key(tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REACH_KEY", text)
    with pytest.raises(DataError, match="must hold 64 hexadecimal digits") as in_file:
        key_in_file(written(tmp_path, text))
    with pytest.raises(DataError, match="REACH_KEY must hold 64 hexadecimal digits") as in_environment:
        key_in_environment("REACH_KEY")
    for caught in (in_file, in_environment):
        assert DIGITS[:20] not in str(caught.value)
        assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("mode", "others"),
    [
        (0o644, "all users of this machine"),
        (0o602, "all users of this machine"),
        (0o604, "all users of this machine"),
        (0o640, "the group of the file"),
        (0o620, "the group of the file"),
        (0o440, "the group of the file"),  # a secret that Kubernetes mounts with fsGroup
    ],
)
def test_a_key_that_others_can_read(tmp_path: Path, mode: int, others: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, DIGITS, mode)
    with pytest.raises(DataError, match=rf"{others} can read it\. Run: chmod 600 reach\.key .*install -m 600"):
        key_in_file(path)
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(os, "name", "nt")  # where modes say nothing
        assert key_in_file(path) == bytes.fromhex(DIGITS)


def test_keys_that_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match=r"does not exist\. Create one with"):
        key_in_file(tmp_path / "other.key")
    with pytest.raises(DataError, match="cannot be read"):
        key_in_file(tmp_path)
    monkeypatch.delenv("REACH_KEY", raising=False)
    with pytest.raises(DataError, match="REACH_KEY is not set"):
        key_in_environment("REACH_KEY")
    monkeypatch.setenv("REACH_KEY", DIGITS)
    assert key_in_environment("REACH_KEY") == bytes.fromhex(DIGITS)


def test_a_key_given_in_place_of_a_file_is_not_repeated(tmp_path: Path) -> None:
    key = "0f" * 32
    with pytest.raises(DataError) as caught:
        key_in_file(tmp_path / key)
    assert key not in str(caught.value)
    assert "A key was given instead of the name of a key file" in str(caught.value)
