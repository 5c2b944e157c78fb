"""The TOML file of one service."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field

from hushuffle.errors import Problem
from hushuffle.network.phones.keys import Role
from hushuffle.network.specification import NodeName, Text, listening_place
from hushuffle.specification._base import File
from hushuffle.specification.reading import parsed, read_text
from hushuffle.specification.wording import Vocabulary


class ServiceSettings(File):
    """What a service is, where it listens, and where its tasks, keys and memory are; never the keys themselves."""

    role: Role
    """"relay", "scrambler", "target", "result" or "issuer"."""
    name: NodeName
    """Its name in the documents of tasks."""
    listen: Annotated[str, AfterValidator(listening_place)]
    """Where it listens, "host:port", or "fd:N" for a socket that the process was started with."""
    tasks: Text = "tasks"
    """A folder with the documents of its tasks, FILE.json; it is read again when the process gets SIGHUP."""
    state: Text = "state"
    """A private folder for what it must not forget, NAME.sqlite."""
    database: Text | None = None
    """For an issuer: a PostgreSQL database that several of its processes share, as libpq writes it, or env:NAME."""
    keys: Text | None = None
    """A file of `hushuffle node keys`, or env:NAME; a relay has none."""
    gateway: Text | None = None
    """For a relay: the URL of the first scrambler."""
    codes: Text | None = None
    """For an issuer: codes.public of `hushuffle node codes`, with which it checks who is invited."""
    signers: Annotated[int, Field(ge=1, le=64)] = 1
    """For an issuer: how many processes sign. A signature takes some milliseconds."""
    results: Text = "results"
    """For the result: the folder to write into, a file for each task."""
    keep: Annotated[float, Field(ge=60, le=31_536_000)] = 604_800.0
    """How many seconds after a task's end what was kept of it is deleted; a week by default."""
    certificate: Text | None = None
    """A file with a certificate for TLS, where no proxy in front of the service ends it."""
    certificate_key: Text | None = None
    """The file with its private key."""
    connections: Annotated[int, Field(ge=1, le=100_000)] = 4096
    """The most connections at a time. A silent one makes room for a further one; if there is none, it is closed."""
    connections_each: Annotated[int, Field(ge=1)] | None = None
    """The most connections of one address at a time; left out: half of all. Behind a proxy all have its address."""

    @classmethod
    def problems(cls, raw: Mapping[str, Any]) -> Iterator[Problem]:
        role = raw.get("role")
        if role == "relay" and "gateway" not in raw:
            yield Problem(
                key="gateway", rule="must be there for a relay", value="nothing", hint="The first scrambler's URL."
            )
        if role in ("scrambler", "target", "result", "issuer") and "keys" not in raw:
            hint = "`hushuffle node keys NAME --role ROLE --out DIR` makes them."
            yield Problem(key="keys", rule="must be there for all but a relay", value="nothing", hint=hint)
        for key, owner in (("gateway", "relay"), ("codes", "issuer"), ("signers", "issuer"), ("database", "issuer")):
            if raw.get(key, 1) != 1 and role != owner:
                yield Problem(key=key, rule=f"must be left out but for a {owner}", value=f"role {role!r}")
        if role == "issuer" and "codes" not in raw:
            hint = "`hushuffle node codes COUNT --out DIR` makes them."
            yield Problem(key="codes", rule="must be there for an issuer", value="nothing", hint=hint)
        if ("certificate" in raw) != ("certificate_key" in raw):
            yield Problem(key="certificate", rule="must be there with certificate_key, or neither", value="one of them")


_WORDS: Final = Vocabulary(sections={"": (ServiceSettings,)}, goes_with={})


def load_service(path: Path) -> ServiceSettings:
    """Return the settings in a TOML file.

    Raises:
        SpecificationError: with every problem: key, rule, value, hint.
    """
    return parsed(read_text(path), ServiceSettings, file=str(path), words=_WORDS)
