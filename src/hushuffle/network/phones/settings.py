"""The settings of one service, read from a TOML file."""

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
    """A service's role, address, and the paths of its tasks, keys and state; never the keys themselves."""

    role: Role
    """"relay", "scrambler", "target", "result" or "issuer"."""
    name: NodeName
    """Name of the service in the documents of tasks."""
    listen: Annotated[str, AfterValidator(listening_place)]
    """Address on which the service listens: "host:port", or "fd:N" for a socket that the process inherits."""
    tasks: Text = "tasks"
    """Folder with the documents of the service's tasks, FILE.json; SIGHUP makes the process read it again."""
    state: Text = "state"
    """Private folder for the service's database, NAME.sqlite."""
    database: Text | None = None
    """For an issuer: PostgreSQL database that its processes share, as "postgresql://host/name" or env:NAME."""
    keys: Text | None = None
    """File that `hushuffle node keys` created, or env:NAME; a relay has no keys."""
    gateway: Text | None = None
    """For a relay: URL of the first scrambler."""
    codes: Text | None = None
    """For an issuer: codes.public, created by `hushuffle node codes`, to check invitations."""
    signers: Annotated[int, Field(ge=1, le=64)] = 1
    """For an issuer: number of processes that sign. A signature takes some milliseconds."""
    results: Text = "results"
    """For the result: folder that receives ID.json for each task."""
    keep: Annotated[float, Field(ge=60, le=31_536_000)] = 604_800.0
    """Seconds from the end of a task to the deletion of its data; default: a week."""
    certificate: Text | None = None
    """File with a certificate, if the service itself ends TLS (1.3) and not a proxy."""
    certificate_key: Text | None = None
    """File with the private key of the certificate."""
    connections: Annotated[int, Field(ge=1, le=100_000)] = 4096
    """Largest number of open connections. The oldest silent one of the address with the most makes room for another."""
    connections_each: Annotated[int, Field(ge=1)] | None = None
    """Largest number of open connections per address; default: half of `connections`. A proxy counts as one address."""

    @classmethod
    def problems(cls, raw: Mapping[str, Any]) -> Iterator[Problem]:
        role = raw.get("role")
        if role == "relay" and "gateway" not in raw:
            hint = "The first scrambler's URL."
            yield Problem(key="gateway", rule="must be given for a relay", value="nothing", hint=hint)
        if role in ("scrambler", "target", "result", "issuer") and "keys" not in raw:
            hint = "Create them with `hushuffle node keys NAME --role ROLE --out DIR`."
            yield Problem(key="keys", rule="must be set for every role except a relay", value="nothing", hint=hint)
        for key, owner in (("gateway", "relay"), ("codes", "issuer"), ("signers", "issuer"), ("database", "issuer")):
            if raw.get(key, 1) != 1 and role != owner:
                yield Problem(key=key, rule=f"must be left out except for a {owner}", value=f"role {role!r}")
        if role == "issuer" and "codes" not in raw:
            hint = "Create them with `hushuffle node codes COUNT --out DIR`."
            yield Problem(key="codes", rule="must be given for an issuer", value="nothing", hint=hint)
        if ("certificate" in raw) != ("certificate_key" in raw):
            yield Problem(key="certificate", rule="must be set together with certificate_key", value="one of them")


_WORDS: Final = Vocabulary(sections={"": (ServiceSettings,)}, goes_with={})


def load_service(path: Path) -> ServiceSettings:
    return parsed(read_text(path), ServiceSettings, file=str(path), words=_WORDS)
