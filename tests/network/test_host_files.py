"""The file that says on which hosts a plan is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from hushuffle.errors import SpecificationError
from hushuffle.network.specification import load_hosts

GOOD = """
seals = "seals"
sources = ["ann", "bob", "ann"]
[servers]
result = "result.example.org:9000"
compute-1-1 = "[2001:db8::1]:9001"
"""


def problems(folder: Path, text: str) -> str:
    """Return what is wrong with a file."""
    path = folder / "hosts.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SpecificationError) as caught:
        load_hosts(path)
    return str(caught.value)


def test_hosts_are_read(tmp_path: Path) -> None:
    path = tmp_path / "hosts.toml"
    path.write_text(GOOD, encoding="utf-8")
    found = load_hosts(path)
    assert found.sources == ("ann", "bob", "ann")
    assert found.servers == {"result": "result.example.org:9000", "compute-1-1": "[2001:db8::1]:9001"}
    path.write_text(GOOD.replace('sources = ["ann", "bob", "ann"]', 'sources_file = "names.txt"'), encoding="utf-8")
    assert load_hosts(path).sources_file == "names.txt"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('sources = ["ann", "bob", "ann"]', "", "sources: must be given, or sources_file instead, got neither"),
        ("[servers]", 'sources_file = "names.txt"\n[servers]', "or sources_file instead, got both"),
        ('["ann", "bob", "ann"]', "[]", "sources: must be one or more names, got none"),
        ('"bob"', '"Bob"', "lower-case letters"),
        ('"bob"', '"bob.example"', "lower-case letters"),
        ('"bob"', f'"{"b" * 64}"', "lower-case letters"),
        ("result =", "Result =", "lower-case letters"),
        ('"result.example.org:9000"', '"result.example.org"', 'must be "host:port"'),
        ('"result.example.org:9000"', '":9000"', 'must be "host:port"'),
        ('"result.example.org:9000"', '"here:65536"', "The port must be a number from 1 to 65535"),
        ('"result.example.org:9000"', '"here:0"', "The port must be a number from 1 to 65535"),
        ('seals = "seals"', "", "seals"),
    ],
)
def test_what_is_wrong_is_said(old: str, new: str, words: str, tmp_path: Path) -> None:
    assert old in GOOD
    said = problems(tmp_path, GOOD.replace(old, new))
    assert words in said
    assert "pydantic" not in said
