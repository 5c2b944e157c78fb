"""The operator of a service: what an older backup, a wrong certificate or a service that is not there comes to."""

from __future__ import annotations

import asyncio
import datetime as dt
import io
import json
import shutil
import socket
import ssl
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from hushuffle.errors import DataError
from hushuffle_network import service as service_module
from hushuffle_network.batches import Came, held_back
from hushuffle_network.client import PhoneError, TryAgainError, post
from hushuffle_network.meter import Meter, certificate_in
from hushuffle_network.relay import Relay
from hushuffle_network.scrambler import Scrambler
from hushuffle_network.serve import about_certificate
from hushuffle_network.settings import ServiceSettings
from network.phone_cases import plan_text
from network.phone_stage import PhoneStage


def text(chain: int, *, least: int = 8, people: int = 16) -> str:
    traffic = f"dummies = 3\nbatch = 8\nmin_batch = {least}\nscramblers = {chain}"
    return plan_text(sets='[["sex"]]', traffic=traffic).replace("people = 24", f"people = {people}")


@pytest.mark.parametrize("chain", [1, 2])
@pytest.mark.parametrize("backup", ["older", "none"])
def test_a_scrambler_put_back_from_an_older_backup_sends_no_batch_a_second_time(
    chain: int, backup: str, tmp_path: Path
) -> None:
    """Six people would be in two batches of one number, with other dummies and other people."""
    full = 8 + held_back(8, 5)

    async def run() -> None:
        async with PhoneStage(tmp_path, text(chain, least=5, people=24), chain=chain) as stage:
            stage.out = io.StringIO()
            await stage.start_all()
            sent, phones, state = stage.sendings(), stage.phones(), tmp_path / "state"
            await phones.send(sent[:6])
            await stage.stop("scrambler-1")
            shutil.copytree(state, tmp_path / "backup")
            await stage.start("scrambler-1")
            await phones.send(sent[6:full])
            receiver = "target-1-1" if chain == 1 else "scrambler-2"
            while not stage.meters[receiver].of("batches", "received"):  # noqa: ASYNC110 - a counter has no event
                await asyncio.sleep(0.02)
            await stage.stop("scrambler-1")
            for path in state.glob("scrambler-1*"):
                path.unlink()
            if backup == "older":
                for path in (tmp_path / "backup").glob("scrambler-1*"):
                    shutil.copy(path, state)
            await stage.start("scrambler-1")
            scrambler = stage.services["scrambler-1"]
            assert isinstance(scrambler, Scrambler)
            while not stage.meters["scrambler-1"].of("refused", "older state"):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            crowd = await stage.phones().send(sent[full:])
            assert dict(crowd.refused) == {"out of service": 24 - full}
            await scrambler._release_full(scrambler.tasks[stage.document.id], 1, last=True)  # as at the deadline
            assert stage.meters["scrambler-1"].of("batches", "released") == 0
            async with ClientSession() as session, session.get(stage.url("scrambler-1") + "/health") as answer:
                about = await answer.json()
            assert about["state"] == "trouble"
            (why,) = about["troubles"].values()
            assert f"{receiver} has batch 1 of step 1, but this scrambler has recorded 0" in why
            assert "Restore its newest state" in stage.out.getvalue()

    asyncio.run(run())


def test_what_a_receiver_has_is_believed_only_if_it_has_signed_it_for_this_question(tmp_path: Path) -> None:
    stage = PhoneStage(tmp_path, text(2), people=16)
    for one in stage.sockets.values():
        one.close()
    document, nonce = stage.document, "0" * 32
    place, sign = document.chain[1], stage.keys["scrambler-2"].sign
    said = Came(task=document.id.hex(), step=1, nonce=nonce, highest=0, closed=False)
    assert said.signed(sign).by(place, document.id, 1, nonce)
    assert not said.signed(sign).by(place, document.id, 1, "1" * 32)
    assert not said.signed(sign).by(place, document.id, 2, nonce)
    assert not said.signed(stage.keys["relay"].sign).by(place, document.id, 1, nonce)
    assert not said.by(place, document.id, 1, nonce)


# Links and certificates


def certificate(folder: Path, name: str, *, days: float = 30.0, host: str = "localhost") -> tuple[Path, Path]:
    """Write a certificate of an authority of its own, which is written beside it; return it with its key's file."""
    key, now = ec.generate_private_key(ec.SECP256R1()), dt.datetime.now(dt.UTC)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=60))
        .not_valid_after(now + dt.timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, secret = folder / f"{name}.pem", folder / f"{name}.key"
    pem.write_bytes(made.public_bytes(Encoding.PEM))
    secret.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return pem, secret


def service(folder: Path, **more: object) -> Relay:
    settings: dict[str, Any] = {
        "role": "relay",
        "name": "relay",
        "listen": "127.0.0.1:9",
        "gateway": "https://localhost:1",
    }
    return Relay(ServiceSettings(**settings | more), folder, meter=Meter("relay", service="relay", out=io.StringIO()))


@pytest.mark.parametrize(
    ("days", "host", "trusted", "words", "by_phone"),
    [
        (30.0, "localhost", True, None, None),
        (-1.0, "localhost", True, "its certificate has expired", "of localhost has expired"),
        (30.0, "other.example", True, "its certificate is for another name", "of localhost is for another name"),
        (30.0, "localhost", False, "its certificate is not trusted", "of localhost is not signed by an authority"),
    ],
)
def test_a_link_or_a_phone_that_a_certificate_stops_says_what_is_wrong_with_it(
    days: float,
    host: str,
    trusted: bool,
    words: str | None,
    by_phone: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pem, secret = certificate(tmp_path, "there", days=days, host=host)
    known = pem if trusted else certificate(tmp_path, "else")[0]
    monkeypatch.setenv("SSL_CERT_FILE", str(known))
    monkeypatch.setattr("aiohttp.connector._SSL_CONTEXT_VERIFIED", ssl.create_default_context(cafile=str(known)))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem, secret)

    async def hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
        await writer.drain()
        writer.close()

    async def run() -> None:
        relay = service(tmp_path)
        server = await asyncio.start_server(hello, "127.0.0.1", 0, ssl=context)
        port = server.sockets[0].getsockname()[1]
        session = relay.session()
        found = await relay.get(session, f"https://localhost:{port}/health", most=100)
        assert relay.troubles == ({} if words is None else {f"https://localhost:{port}": words})
        assert relay.meter.of("unreached", words or "-") == (words is not None)
        assert (found is None) == (words is not None)
        if by_phone is None:
            assert (await asyncio.to_thread(post, f"https://localhost:{port}/", None, {}))[0] == 200
        else:
            with pytest.raises(PhoneError, match=by_phone) as caught:
                await asyncio.to_thread(post, f"https://localhost:{port}/", None, {})
            assert not isinstance(caught.value, TryAgainError)
        await session.close()
        server.close()
        relay.store.close()

    asyncio.run(run())


def test_a_service_that_is_not_there_is_named_before_anything_is_sent_and_after_it_came_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_module, "_AGAIN", (0.1, 0.1))

    async def run() -> None:
        async with PhoneStage(tmp_path, text(1), people=16, chain=1) as stage:
            stage.out = io.StringIO()
            there = stage.sockets["target-1-2"].getsockname()
            stage.sockets["target-1-2"].close()
            await stage.start_all("target-1-2")

            async def troubles() -> dict[str, str]:
                async with ClientSession() as session, session.get(stage.url("scrambler-1") + "/health") as answer:
                    return dict((await answer.json()).get("troubles", {}))

            where = f"http://127.0.0.1:{there[1]}"
            async with asyncio.timeout(10):
                while await troubles() != {where: "nothing listens there"}:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
            assert stage.meters["scrambler-1"].of("unreached", "nothing listens there") > 0
            lines = [json.loads(line) for line in stage.out.getvalue().splitlines()]
            said = [one for one in lines if one["event"] == "link fails" and one["service"] == "scrambler-1"]
            assert [(one["to"], one["cause"]) for one in said] == [(where, "nothing listens there")]
            stage.sockets["target-1-2"] = socket.create_server(there)
            await stage.start("target-1-2")
            async with asyncio.timeout(10):
                while await troubles():  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
            assert "link works" in stage.out.getvalue()

    asyncio.run(run())


def test_a_certificate_is_looked_at_when_a_service_starts(tmp_path: Path) -> None:
    soon, _ = certificate(tmp_path, "soon", days=5.5, host="*.example.org")
    relay = service(tmp_path, certificate="soon.pem", certificate_key="soon.key")
    about_certificate(relay)
    assert relay.troubles == {"certificate": "it expires in 5 days"}
    assert '"days_left": 5' in relay.meter._out.getvalue()  # type: ignore[union-attr]
    relay.store.close()
    found = certificate_in(soon)
    assert [found.covers(one) for one in ("a.example.org", "example.org", "a.b.example.org")] == [True, False, False]
    certificate(tmp_path, "old", days=-1)
    with pytest.raises(DataError, match=r"old\.pem has expired on 20.* Replace it and start the service again"):
        certificate_in(tmp_path / "old.pem")
    with pytest.raises(DataError, match="holds no certificate"):
        certificate_in(tmp_path / "soon.key")


def test_a_certificate_for_another_name_is_a_trouble_from_the_start(tmp_path: Path) -> None:
    stage = PhoneStage(tmp_path, text(1), people=16, chain=1)
    for one in stage.sockets.values():
        one.close()
    certificate(tmp_path, "other", host="other.example")
    relay = service(tmp_path, certificate="other.pem", certificate_key="other.key")
    about_certificate(relay)
    assert "it is not for 127.0.0.1, the host name of this service" in relay.troubles["certificate"]
    relay.store.close()
