from __future__ import annotations

from pathlib import Path

import pytest

from hushuffle.cli import main
from hushuffle.cli.console import Exit

SHIPPED = Path(__file__).parents[2] / "examples"


def test_the_list_names_every_example_and_says_what_it_is_about(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["examples"]) == Exit.DONE
    lines = capsys.readouterr().out.splitlines()
    names = [line for line in lines if not line.startswith(" ")]
    assert names == sorted(file.name for file in (*SHIPPED.glob("*.toml"), *SHIPPED.glob("notebooks/*.ipynb")))
    assert all(line.startswith("    ") and len(line) <= 80 for line in lines if line not in names)
    assert lines[1].strip() == "A survey with an embarrassing question, planned again with privacy"


def test_a_new_folder_gets_all_of_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "a" / "b"
    assert main(["examples", str(folder)]) == Exit.DONE
    copies, shipped = (
        {file.name: file.read_bytes() for file in place.rglob("*") if file.is_file() and file.suffix != ".pyc"}
        for place in (folder, SHIPPED)
    )
    assert copies == shipped
    assert (folder / "dbt" / "models" / "reports.py").exists()
    assert capsys.readouterr().out == f"Wrote {len(copies)} files into {folder}\n"


def test_nothing_is_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["examples", str(tmp_path)]) == Exit.USAGE
    assert "exists. Choose a new folder" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
