"""Small tasks for phones, with keys made for the test."""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Callable, Mapping, Sequence

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from hushuffle_network.promise import Services, draw_task
from hushuffle_network.queries import parse_plan
from hushuffle_network.settings import keys_of_steps
from hushuffle_network.task import Issuer, Place, TaskDocument, names_of

_TRAFFIC = "dummies = 3\nbatch = 8\nmin_batch = 5\nscramblers = 2"


def plan_text(
    *, sets: str = '[["age"], ["sex"]]', traffic: str = "", more: str = "", network: str = "", partitions: int = 3
) -> str:
    """Return the text of a small plan."""
    return f"""
[query]
kind = "aggregate"
generated = {{ people = 24 }}
columns = {{ age = {{ low = 0, high = 60, intervals = 6 }}, sex = ["a", "b", "c"] }}
grouping_sets = {sets}
values = ["pay"]
ranges = {{ pay = [0, 100] }}
functions = ["count", "sum"]
partitions = {partitions}
{more}
[traffic]
sigma = 0.3
{traffic or _TRAFFIC}
[targets]
delta = 1e-6
[network]
collect = 60.0
patience = 5.0
least = 0.5
{network}
"""


def place(name: str, url: str = "http://127.0.0.1:1") -> Place:
    """Return a service with keys that nobody has."""
    key, sign = X25519PrivateKey.generate().public_key(), Ed25519PrivateKey.generate().public_key()
    return Place(name=name, url=url, key=key.public_bytes_raw().hex(), sign=sign.public_bytes_raw().hex())


def services_at(
    places: Mapping[str, Place], counts: Sequence[int], chain: int, url: Callable[[str], str], keys: Sequence[str]
) -> Services:
    """Return the services of steps with so many targets; `keys`: the issuer's public keys."""
    return Services(
        relay=url("relay") + "/",
        chain=tuple(places[f"scrambler-{number}"] for number in range(1, chain + 1)),
        targets=tuple(
            tuple(places[f"target-{step}-{place}"] for place in range(1, count + 1))
            for step, count in enumerate(counts, 1)
        ),
        result=places["result"],
        issuer=Issuer(name="issuer.example", url=url("issuer")),
        token_keys=keys_of_steps(keys, 0, len(keys) // 2),
    )


def services(steps: int, partitions: int = 3, chain: int = 2) -> Services:
    """Return services that nobody runs."""
    counts, keys = [partitions] * steps, [base64.b64encode(bytes(340)).decode()] * 2 * steps
    places = {name: place(name) for name in names_of(counts, chain)}
    return services_at(places, counts, chain, lambda name: f"http://127.0.0.1:{2 + (name == 'issuer')}", keys)


def drawn(
    text: str | None = None, *, people: int = 24, steps: int = 2, partitions: int = 3, chain: int = 2
) -> TaskDocument:
    """Return the document of a small task."""
    moment = dt.datetime(2026, 5, 1, tzinfo=dt.UTC)
    return draw_task(parse_plan(text or plan_text()), people, services(steps, partitions, chain), start=moment)
