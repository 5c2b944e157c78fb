"""Phones through a relay, two scramblers and targets: time, memory, and the cryptography of the same messages alone.

    python benchmarks/phones.py 10000            # one message for each phone, connections kept
    python benchmarks/phones.py 10000 --one-each # a connection for each request of a phone

Every service is a process of its own, plain HTTP on the loopback interface; phones are one process. CPU seconds are
those from the first message to the result, of phones and services together.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from hushuffle.randomness import secure
from hushuffle_network.batches import Onions
from hushuffle_network.crowd import Phones, sendings
from hushuffle_network.formats import Invitation, blind, encapsulate, is_proof, token_challenge
from hushuffle_network.promise import check_task
from hushuffle_network.queries import parse_plan
from hushuffle_network.rehearse import Rehearsal
from hushuffle_network.settings import ServiceKeys
from hushuffle_network.tokens import Verifier

T = TypeVar("T")
SAMPLE = 1000
"""Messages whose cryptography is measured alone."""


def plan_of(people: int) -> str:
    batch = min(people, 10_000)
    return f"""
[query]
kind = "aggregate"
generated = {{ people = {people} }}
columns = {{ age = 20 }}
grouping_sets = [["age"]]
values = ["pay"]
ranges = {{ pay = [0, 100] }}
functions = ["count", "sum"]
partitions = 4
[traffic]
sigma = 0.2
dummies = {batch // 100}
batch = {batch}
min_batch = {batch // 2}
scramblers = 2
[targets]
delta = 1e-6
[network]
patience = 300
least = 0.5
"""


def with_children(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(one for child in children for one in with_children(int(child)))]


def seconds_of(pid: int) -> float:
    return sum(map(_seconds, with_children(pid)))


def _seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_of(pid: int | str) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


class Unrecorded(Rehearsal):
    """A rehearsal whose services reach each other directly, without the recorder of its trace."""

    def url(self, name: str) -> str:
        """Return a service's own address."""
        return f"http://127.0.0.1:{self.sockets[name].getsockname()[1]}"


class Clock:
    """CPU seconds of each kind of work on one message."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}

    def of(self, what: str, work: Callable[..., T], *arguments: Any, **more: Any) -> T:
        """Return what some work returns, and count its time."""
        start = time.process_time()
        done = work(*arguments, **more)
        self.spent[what] = self.spent.get(what, 0.0) + (time.process_time() - start) / SAMPLE
        return done


def pure(rehearsal: Rehearsal) -> dict[str, float]:
    """Return CPU seconds of the cryptography of one message: all that phone and services do with it."""
    document, folder, clock = rehearsal.document, rehearsal.folder, Clock()
    keys = {name: ServiceKeys.read(str(folder / name / f"{name}.keys")) for name in rehearsal.names if name != "relay"}
    onions, gateway, (issuer, other) = Onions(document, 1), keys["scrambler-1"].gateway, keys["issuer"].tokens[:2]
    target, spki, config = document.step(1).targets[0].name, document.token_key(1), document.gateway
    challenge, verifier = token_challenge(document.issuer.name, document.context(1, target), ""), Verifier(spki)
    admits, entrance, code = document.ticket_challenge(1), Verifier(other.spki), rehearsal.codes[0]
    for _ in range(SAMPLE):
        blinded = clock.of("blind", blind, spki, challenge)
        for kind, request in (("token", blinded.request), ("ticket", blinded.request)):
            asked = clock.of("prove", Invitation, code)
            header = clock.of("prove", asked.shown, document.id, 1, kind, spki, request)[1]
            proof = bytes.fromhex(header[-129:-1])
            assert clock.of("prove", is_proof, asked.public, proof, document.id, 1, kind, spki, request)
        signed = clock.of("sign", issuer.sign, blinded.request)
        token = clock.of("blind", blinded.finalize, signed)
        message = clock.of("seal", onions.message, 0, token, bytes(12))
        asked = clock.of("blind", blind, other.spki, admits)
        ticket = clock.of("blind", asked.finalize, clock.of("sign", other.sign, asked.request))
        sealed, opened = clock.of("seal", encapsulate, config, document.request(1, message, ticket))
        _, answer = clock.of("open", gateway.open, sealed)
        clock.of("verify", entrance.nonce, ticket, admits)
        clock.of("seal", opened, clock.of("open", answer, bytes(20)))
        for hop, one in enumerate(document.chain):
            message = clock.of("open", onions.opened, message, keys[one.name].seal, hop=hop) or b""
        clock.of("open", onions.taken, message[2:], keys[target].seal, target=0)
        clock.of("verify", verifier.nonce, token, challenge)
    return clock.spent


async def run(people: int, *, kept: bool, together: int, signers: int) -> dict[str, object]:
    specification = parse_plan(plan_of(people))
    records = specification.query.records(Path())
    with tempfile.TemporaryDirectory() as place:
        rehearsal = Unrecorded(specification, people, Path(place))
        document = rehearsal.document
        asked = dict(enumerate(specification.query.asked(specification.plan(people), people, secure()), 1))
        sent = sendings(document, check_task(document), records.rows, asked, rehearsal.codes, secure())
        alone = pure(rehearsal)
        with (rehearsal.folder / "issuer" / "issuer.toml").open("a") as file:
            file.write(f"signers = {signers}\n")
        try:
            for name in rehearsal.names:
                await rehearsal.start(name)
            await rehearsal.ready()
            pids = {name: one.pid for name, one in rehearsal.running.items()}
            before, phones = (
                {name: seconds_of(pid) for name, pid in pids.items()},
                Phones(document, reuse=kept, together=together),
            )
            start, own = time.monotonic(), time.process_time()
            crowd = await phones.send(sent)
            came = time.monotonic() - start
            result = await rehearsal.result(rehearsal.document)
            wall, mine = time.monotonic() - start, time.process_time() - own
            spent = {name: seconds_of(pid) - before[name] for name, pid in pids.items()}
            again = pure(rehearsal)
            alone = {what: (before_run + again[what]) / 2 for what, before_run in alone.items()}
            peaks = {name: round(peak_of(pid)) for name, pid in pids.items()} | {"phones": round(peak_of("self"))}
            disk = {
                name: round(sum(path.stat().st_size for path in (Path(place) / name / "state").iterdir()) / 2**20, 1)
                for name in rehearsal.names
            }
        finally:
            await rehearsal.stop()
            rehearsal.close()
    total, per = mine + sum(spent.values()), sum(alone.values())
    return {
        "phones": people,
        "connections kept": kept,
        "taken": crowd.taken,
        "refused": dict(crowd.refused),
        "came through": [one["sources"] for one in result.get("answers", ())] or result["failed"],
        "document bytes": len(document.content),
        "request bytes": document.sealed_request,
        "wall seconds": round(wall, 1),
        "until the last was taken": round(came, 1),
        "CPU seconds": {name: round(one, 1) for name, one in (spent | {"phones": mine}).items()},
        "CPU milliseconds a message": round(1000 * total / people, 3),
        "cryptography alone, milliseconds": {name: round(1000 * one, 3) for name, one in alone.items()},
        "messages a CPU second": round(people / total, 1),
        "of cryptography alone": round(1 / per, 1),
        "ratio": round(per * people / total, 3),
        "ratio without signing": round((per - alone["sign"]) * people / (total - alone["sign"] * people), 3),
        "peak MB": peaks,
        "disk MB": disk,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("phones", type=int)
    parser.add_argument("--one-each", action="store_true", help="a connection for each request of a phone")
    parser.add_argument("--together", type=int, default=64, help="phones at a time")
    parser.add_argument("--signers", type=int, default=1, help="processes of the issuer that sign")
    given = parser.parse_args()
    measured = run(given.phones, kept=not given.one_each, together=given.together, signers=given.signers)
    print(json.dumps(asyncio.run(measured), indent=1))


if __name__ == "__main__":
    main()
