"""What the page says of services for phones: tables and addresses; and the files to deploy them."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from hushuffle_network.meter import METRICS
from hushuffle_network.serve import SERVICES
from hushuffle_network.settings import ServiceSettings
from hushuffle_network.store import SCHEMA, VERSION
from network.phone_stage import PhoneStage

ROOT = Path(__file__).parents[2]
PAGE_FOLDER = ROOT / "docs" / "reference"
PAGE = (PAGE_FOLDER / "phone-services.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    return PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]


def rows(title: str) -> list[list[str]]:
    lines = [line for line in section(title).splitlines() if line.startswith("| ")][1:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_setting_and_every_counter_is_listed() -> None:
    page = (PAGE_FOLDER / "program.md").read_text(encoding="utf-8").partition("## Settings of a service")[2]
    assert set(re.findall(r"^- `(\w+)", page, flags=re.MULTILINE)) == {*ServiceSettings.model_fields, *METRICS}


def test_every_table_of_the_database_is_listed_with_its_columns() -> None:
    db = sqlite3.connect(":memory:")
    for statement in SCHEMA:
        db.execute(statement)
    listed = {row[0].strip("`"): row[1].split(", ") for row in rows("Database")}
    names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    assert listed == {name: [row[1] for row in db.execute(f"PRAGMA table_info({name})")] for name in names}
    assert f"| `about` | version, service | version {VERSION} |" in PAGE
    db.close()


def test_every_address_is_listed(tmp_path: Path) -> None:
    stage = PhoneStage(tmp_path)
    listed = {
        re.sub(r"\b(ID|NONCE|N|B)\b", "*", path) for path in re.findall(r"`(?:GET|POST) ([^`]+)`", section("Addresses"))
    }
    served = {"/health", "/metrics", "/tasks/*"}
    for role, kind in SERVICES.items():
        found = object.__new__(kind)
        served |= {re.sub(r"\{[^}]+\}", "*", one.path) for one in kind.routes(found)}
        assert role in stage.roles.values()
    for one in stage.sockets.values():
        one.close()
    assert listed == served


@pytest.mark.parametrize("row", rows("Attacks and their effects"), ids=lambda row: f"{row[0]} {row[1]}")
def test_every_reason_in_the_table_of_cheaters_is_one_that_a_test_asks_for(row: list[str]) -> None:
    folder = ROOT / "tests" / "network"
    paths = [
        *(folder / f"test_{name}.py" for name in ("adversaries", "tickets")),
        *(ROOT / "tests/attacks_on_us").iterdir(),
    ]
    tests = "".join(path.read_text(encoding="utf-8") for path in paths if path.suffix == ".py")
    for reason in re.findall(r"`([^`]+)`", row[2]):
        assert reason in tests


def test_the_unit_and_the_container_start_what_there_is() -> None:
    unit = (ROOT / "deploy" / "hushuffle@.service").read_text(encoding="utf-8")
    assert "hushuffle node start %i.toml" in unit
    container = (ROOT / "deploy" / "Containerfile").read_text(encoding="utf-8")
    assert 'exec hushuffle node start \\"/service/$1.toml\\"' in container
    assert "/source/packages/hushuffle-network" in container
