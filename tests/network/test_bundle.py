"""A task drawn up for hosts of their own: keys made where they are used, one folder for each host, no others' keys."""

from __future__ import annotations

import json
import stat
import tomllib
from pathlib import Path

import pytest

from hushuffle.cli import main
from hushuffle.cli.console import Exit
from hushuffle.errors import DataError, SpecificationError
from hushuffle_network.bundle import prepare_task
from hushuffle_network.formats import Invitation
from hushuffle_network.issuer import listed, make_codes
from hushuffle_network.promise import check_task
from hushuffle_network.queries import parse_plan
from hushuffle_network.settings import ServiceKeys, load_service, public_of
from hushuffle_network.task import names_of, read_task
from network.phone_cases import plan_text
from network.phone_stage import keys_of

PLAN = plan_text(sets='[["age"]]', partitions=2)
NAMES = [*names_of([2], 2), "issuer", "relay"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number, name in enumerate(NAMES[:-1]):
        role = name.split("-")[0]
        keys_of(role, number, 1).write(tmp_path / "keys", name)  # type: ignore[arg-type]
    (tmp_path / "keys" / "codes.public").write_text(make_codes(1)[1][0] + "\n")
    hosts(tmp_path, NAMES)
    return tmp_path


def hosts(folder: Path, names: list[str], more: str = "") -> None:
    urls = "".join(f'{name} = "https://{name}.example.org"\n' for name in names)
    (folder / "hosts.toml").write_text(f'people = 24\nkeys = "keys"\n{more}\n[urls]\n{urls}')


def test_each_host_gets_its_own_keys_and_nobody_elses(folder: Path) -> None:
    prepared = prepare_task(parse_plan(PLAN), folder / "hosts.toml", out=folder / "task", bundle=True)
    document = read_task(prepared.document)
    check_task(document)
    assert prepared.id == document.id.hex()
    assert {path.name for path in (folder / "task").iterdir()} == {"task.json", *NAMES}
    secrets = {name: (folder / "keys" / f"{name}.keys").read_text() for name in NAMES[:-1]}
    for name in NAMES:
        own = folder / "task" / name
        assert stat.S_IMODE(own.stat().st_mode) == 0o700
        assert (own / "tasks" / "task.json").read_bytes() == document.content
        load_service(own / f"{name}.toml")
        files = {path.name: path.read_text() for path in own.rglob("*") if path.is_file()}
        assert {other for other, text in secrets.items() if text in files.values()} == {name} - {"relay"}
        if name != "relay":
            assert stat.S_IMODE((own / f"{name}.keys").stat().st_mode) == 0o600
    assert (folder / "task" / "issuer" / "codes.public").exists()
    assert prepared.commands[0] == "hushuffle node start relay/relay.toml"


def test_what_a_task_promises_is_said_when_it_is_drawn_up(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    for min_batch, out in ((5, "task"), (8, "other")):
        Path("plan.toml").write_text(PLAN.replace("min_batch = 5", f"min_batch = {min_batch}"))
        assert main(["plan", "run", "plan.toml", "--hosts", "hosts.toml", "--out", out]) == Exit.DONE
        said, figures = capsys.readouterr().out, read_task(folder / out / "task.json").figures
        assert f"Epsilon for one person: at most {figures.epsilon:g} at delta = 1e-06" in said
        assert "If the issuer invents people: at most " in said
        assert f"at most {figures.issuer:g} at delta" in said
        assert ("needs all of its 8 people (min_batch)" in said) == (min_batch == 8)


def test_a_plan_is_analysed_without_data_where_phones_bring_the_records(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    Path("plan.toml").write_text(PLAN.replace("generated = { people = 24 }", 'data = "on-phones.csv"'))
    assert main(["plan", "analyse", "plan.toml", "--out", "a"]) == Exit.FAILED
    assert "on-phones.csv" in capsys.readouterr().err
    assert main(["plan", "analyse", "plan.toml", "--people", "24", "--out", "a", "--json"]) == Exit.DONE
    assert "no data were read: 24 people take part (--people)" in capsys.readouterr().out
    assert main(["plan", "analyse", "plan.toml", "--people", "0", "--out", "a"]) != Exit.DONE


def test_services_that_end_tls_get_their_own_certificate(folder: Path) -> None:
    assert main(["node", "certs", "relay", "result", "--out", str(folder / "tls")]) == Exit.DONE
    hosts(folder, NAMES, 'certificates = "tls"')
    prepare_task(parse_plan(PLAN), folder / "hosts.toml", out=folder / "task", bundle=True)
    for name in NAMES:
        own, has = folder / "task" / name, name in ("relay", "result")
        settings = load_service(own / f"{name}.toml")
        names = (f"{name}.pem", f"{name}.key") if has else (None, None)
        assert (settings.certificate, settings.certificate_key) == names
        assert {path.name for ending in ("pem", "key") for path in own.glob(f"*.{ending}")} == set(names) - {None}
        if has:
            assert stat.S_IMODE((own / f"{name}.key").stat().st_mode) == 0o600
    prepare_task(parse_plan(PLAN), folder / "hosts.toml", out=folder / "side")
    assert load_service(folder / "side" / "relay.toml").certificate == "relay.pem"


def test_without_a_bundle_no_keys_are_copied(folder: Path) -> None:
    prepared = prepare_task(parse_plan(PLAN), folder / "hosts.toml", out=folder / "task")
    assert {path.name for path in (folder / "task").iterdir()} == {"task.json", *(f"{name}.toml" for name in NAMES)}
    settings = tomllib.loads((folder / "task" / "relay.toml").read_text())
    assert settings["gateway"] == "https://scrambler-1.example.org"
    assert prepared.commands[-1] == "hushuffle node start result.toml"


def test_what_is_missing_or_too_much_is_named(folder: Path) -> None:
    hosts(folder, NAMES[1:])
    with pytest.raises(SpecificationError, match="must name every service once"):
        prepare_task(parse_plan(PLAN), folder / "hosts.toml", out=folder / "task")
    hosts(folder, [*NAMES, "target-3-1"])
    with pytest.raises(SpecificationError, match="got target-3-1"):
        prepare_task(parse_plan(PLAN), folder / "hosts.toml", out=folder / "task")
    hosts(folder, NAMES, "first_step = 2")
    with pytest.raises(DataError, match="the issuer has keys for 0 steps from number 2 on, but this task takes 1"):
        prepare_task(parse_plan(PLAN), folder / "hosts.toml", out=folder / "task")
    (folder / "keys" / "target-1-1.public.json").write_text("[]")
    hosts(folder, NAMES)
    with pytest.raises(DataError, match="does not hold the public keys"):
        prepare_task(parse_plan(PLAN), folder / "hosts.toml", out=folder / "task")
    (folder / "keys" / "target-1-1.public.json").unlink()
    with pytest.raises(DataError, match="hushuffle node keys target-1-1"):
        prepare_task(parse_plan(PLAN), folder / "hosts.toml", out=folder / "task")
    assert not (folder / "task").exists()


def test_a_folder_that_is_not_empty_is_left_alone(folder: Path) -> None:
    (folder / "task").mkdir()
    (folder / "task" / "mine").touch()
    with pytest.raises(DataError, match="exists, and is not empty"):
        prepare_task(parse_plan(PLAN), folder / "hosts.toml", out=folder / "task")


def test_keys_and_codes_are_made_and_never_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "keys")
    assert main(["node", "keys", "scrambler-1", "result", "--out", out]) == Exit.DONE
    assert main(["node", "codes", "3", "--out", out]) == Exit.DONE
    printed = capsys.readouterr().out
    codes = (tmp_path / "keys" / "codes.txt").read_text().split()
    invited = listed(tmp_path / "keys" / "codes.public")
    assert len(set(codes)) == 3
    assert {Invitation(code).public for code in codes} == invited
    for name in ("scrambler-1.keys", "result.keys", "codes.txt"):
        assert stat.S_IMODE((tmp_path / "keys" / name).stat().st_mode) == 0o600
    keys = ServiceKeys.read(str(tmp_path / "keys" / "scrambler-1.keys"))
    assert keys.public == public_of(tmp_path / "keys", "scrambler-1")
    secret = json.loads(keys.text)
    assert not any(secret[name] in printed + repr(keys) for name in ("seal", "sign"))
    assert main(["node", "keys", "scrambler-1", "--out", out]) == Exit.FAILED
    assert main(["node", "codes", "3", "--out", out]) == Exit.FAILED
    assert main(["node", "codes", "0", "--out", out]) == Exit.USAGE
    assert main(["node", "keys", "issuer", "--steps", "0", "--out", out]) == Exit.USAGE
    assert main(["node", "keys", "relay", "--out", out]) != Exit.DONE
    assert "scrambler-N, target-N-N, result or issuer" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('role = "relay"\nname = "relay"\nlisten = "a:1"', "gateway: must be given for a relay"),
        ('role = "target"\nname = "t"\nlisten = "a:1"', "keys: must be set"),
        ('role = "issuer"\nname = "i"\nlisten = "a:1"\nkeys = "k"', "codes: must be given for an issuer"),
        ('role = "target"\nname = "t"\nlisten = "here"\nkeys = "k"', "listen"),
        ('role = "target"\nname = "t"\nlisten = "a:1"\nkeys = "k"\ncertificate = "c"', "together with certificate_key"),
        (
            'role = "target"\nname = "t"\nlisten = "a:1"\nkeys = "k"\ngateway = "g"',
            "is allowed only for a relay",
        ),
        ('role = "cook"\nname = "t"\nlisten = "a:1"', "role"),
    ],
)
def test_settings_that_cannot_be_are_refused(
    text: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "service.toml").write_text(text)
    assert main(["node", "start", str(tmp_path / "service.toml")]) == Exit.USAGE
    assert why in capsys.readouterr().err


def test_a_service_whose_place_is_taken_or_whose_keys_are_open_says_so(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prepare_task(parse_plan(PLAN), folder / "hosts.toml", out=folder / "task", bundle=True)
    (folder / "task" / "result" / "result.keys").chmod(0o644)
    assert main(["node", "start", str(folder / "task" / "result" / "result.toml")]) == Exit.FAILED
    assert "all users of this machine can read it" in capsys.readouterr().err
    relay = folder / "task" / "relay" / "relay.toml"
    relay.write_text(relay.read_text().replace("127.0.0.1:8080", "192.0.2.1:1"))
    assert main(["node", "start", str(relay)]) == Exit.FAILED
    assert "relay cannot listen at 192.0.2.1:1" in capsys.readouterr().err
    (folder / "task" / "issuer" / "codes.public").write_text("no digest")
    assert main(["node", "start", str(folder / "task" / "issuer" / "issuer.toml")]) == Exit.FAILED
    assert "does not hold the public halves of codes" in capsys.readouterr().err
