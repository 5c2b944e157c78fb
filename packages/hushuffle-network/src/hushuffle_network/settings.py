"""The settings of one service, in a TOML file, and its keys, in a file that only its owner can read."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, get_args

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from pydantic import AfterValidator, Field

from hushuffle import _checks
from hushuffle._checks import fail
from hushuffle.errors import DataError, Problem
from hushuffle.files.causes import cause, failing
from hushuffle.files.private_files import write_private
from hushuffle.files.secret_keys import text_of_secret
from hushuffle.specification._base import File
from hushuffle.specification.reading import parsed, read_text
from hushuffle.specification.wording import Vocabulary
from hushuffle_network.fields import ServiceName, Text, is_name, listening_place
from hushuffle_network.oblivious_http import GatewayKey
from hushuffle_network.task import Place
from hushuffle_network.tokens import IssuerKey

Role = Literal["relay", "scrambler", "target", "result", "issuer"]
CODES: Final = "codes.public"
"""Name of the issuer's file with the public keys of codes."""
ROLES: Final[tuple[Role, ...]] = get_args(Role)


@dataclass(frozen=True, kw_only=True)
class ServiceKeys:
    """The secret keys of a service; the repr does not show them.

    `seal` opens messages for the service, `sign` signs its messages, `tokens` are an issuer's keys: two for each step.
    """

    seal: X25519PrivateKey = field(repr=False)
    sign: Ed25519PrivateKey = field(repr=False)
    tokens: tuple[IssuerKey, ...] = field(default=(), repr=False)

    @classmethod
    def generate(cls, role: Role, *, steps: int = 1) -> Self:
        """Return new keys; `steps`: number of steps for which an issuer gets a token key and a ticket key."""
        return cls(
            seal=X25519PrivateKey.generate(),
            sign=Ed25519PrivateKey.generate(),
            tokens=tuple(IssuerKey.generate() for _ in range(2 * steps)) if role == "issuer" else (),
        )

    @classmethod
    def read(cls, where: str) -> Self:
        """Return the keys in a file that other users cannot read, or in an environment variable ("env:NAME")."""
        try:
            table = json.loads(text_of_secret(where))
            return cls(
                seal=X25519PrivateKey.from_private_bytes(bytes.fromhex(table["seal"])),
                sign=Ed25519PrivateKey.from_private_bytes(bytes.fromhex(table["sign"])),
                tokens=tuple(IssuerKey.of(pem) for pem in table.get("tokens", ())),
            )
        except DataError:
            raise
        except (ValueError, KeyError, TypeError, RecursionError):
            fail(f"{where} does not hold the keys of a service. Create them with `hushuffle node keys`.")

    @property
    def gateway(self) -> GatewayKey:
        """The gateway's key in a first scrambler. It is `seal`, so a document cannot name another gateway key."""
        return GatewayKey(private=self.seal.private_bytes_raw())

    @property
    def text(self) -> str:
        """The secret keys as text, for a file that only its owner can read."""
        seal, sign = self.seal.private_bytes_raw(), self.sign.private_bytes_raw()
        table: dict[str, Any] = {"seal": seal.hex(), "sign": sign.hex()}
        if self.tokens:
            table["tokens"] = [one.pem for one in self.tokens]
        return json.dumps(table, indent=1) + "\n"

    @property
    def public(self) -> dict[str, Any]:
        seal, sign = self.seal.public_key(), self.sign.public_key()
        table: dict[str, Any] = {"seal": seal.public_bytes_raw().hex(), "sign": sign.public_bytes_raw().hex()}
        if self.tokens:
            table["tokens"] = [base64.b64encode(one.spki).decode() for one in self.tokens]
        return table

    def write(self, folder: Path, name: str) -> tuple[Path, Path]:
        """Write NAME.keys, which only its owner can read, and NAME.public.json; never overwrite a file."""
        secret, public = folder / f"{name}.keys", folder / f"{name}.public.json"
        for path in (secret, public):
            if path.exists():
                fail(f"{path} exists, and keys are never overwritten. Give another name or folder.")
        with failing(f"{folder} cannot be written"):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_private(secret, self.text.encode())
            public.write_text(json.dumps(self.public, indent=1) + "\n", encoding="ascii")
        return secret, public


def keys_of_steps(tokens: Sequence[str], first: int, steps: int) -> tuple[tuple[str, str], ...]:
    """Return the pairs of token key and ticket key for `steps` steps, after the issuer's `first` earlier pairs.

    >>> keys_of_steps(["a", "b", "c", "d", "e"], 1, 2)
    (('c', 'd'),)
    """
    places = range(2 * first, min(2 * (first + steps), len(tokens) - 1), 2)
    return tuple((tokens[place], tokens[place + 1]) for place in places)


def role_named(name: str) -> Role:
    """Return the role with which the name of a service starts; refuse a name without a role that has keys.

    >>> role_named("target-1-2")
    'target'
    """
    role = next((one for one in ROLES if name == one or name.startswith(f"{one}-")), None)
    if role is None or role == "relay" or not is_name(name):
        rule = "scrambler-N, target-N-N, result or issuer, in lower-case letters, digits and hyphens"
        _checks.reject("names", rule, name)
    return role


def public_of(folder: Path, name: str) -> dict[str, Any]:
    """Return the public keys of a service from NAME.public.json."""
    path = folder / f"{name}.public.json"
    try:
        table = json.loads(path.read_bytes())
    except OSError as error:
        fail(f"{path} cannot be read: {cause(error)}. `hushuffle node keys {name}` creates it, on the host of {name}.")
    except (ValueError, RecursionError):
        table = None
    if not isinstance(table, dict) or not {"seal", "sign"} <= table.keys():
        fail(f"{path} does not hold the public keys of a service.")
    return table


def place_of(name: str, url: str, public: dict[str, Any]) -> Place:
    return Place(name=name, url=url, key=public["seal"], sign=public["sign"])


class ServiceSettings(File):
    """A service's role, address, and the paths of its tasks, keys and state; never the keys themselves."""

    role: Role
    """"relay", "scrambler", "target", "result" or "issuer"."""
    name: ServiceName
    """Name of the service in the documents of tasks."""
    listen: Annotated[str, AfterValidator(listening_place)]
    """Address on which the service listens: "host:port", or "fd:N" for a socket that the process inherits."""
    tasks: Text = "tasks"
    """Folder with the documents of the service's tasks, FILE.json; SIGHUP makes the process read it again."""
    state: Text = "state"
    """Private folder for the service's database, NAME.sqlite."""
    keys: Text | None = None
    """File that `hushuffle node keys` created, or env:NAME (an environment variable); a relay has no keys."""
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
    """File with a certificate, if the service, and not a proxy, terminates TLS (1.3)."""
    certificate_key: Text | None = None
    """File with the private key of the certificate."""
    connections: Annotated[int, Field(ge=1, le=100_000)] = 4096
    """Largest number of open connections. At the limit, the address with most connections loses its oldest idle one."""
    connections_each: Annotated[int, Field(ge=1)] | None = None
    """Largest number of open connections per address; default: half of `connections`. A proxy counts as one address."""

    @classmethod
    def problems(cls, raw: Mapping[str, Any]) -> Iterator[Problem]:
        role = raw.get("role")
        if role == "relay" and "gateway" not in raw:
            hint = "The first scrambler's URL."
            yield Problem(key="gateway", rule="must be given for a relay", value="nothing", hint=hint)
        if role in ("scrambler", "target", "result", "issuer") and "keys" not in raw:
            hint = "Create them with `hushuffle node keys NAME --out DIR`."
            yield Problem(key="keys", rule="must be set for every role except a relay", value="nothing", hint=hint)
        for key, owner in (("gateway", "relay"), ("codes", "issuer"), ("signers", "issuer")):
            if raw.get(key, 1) != 1 and role != owner:
                yield Problem(key=key, rule=f"is allowed only for a {owner}", value=f"role {role!r}")
        if role == "issuer" and "codes" not in raw:
            hint = "Create them with `hushuffle node codes COUNT --out DIR`."
            yield Problem(key="codes", rule="must be given for an issuer", value="nothing", hint=hint)
        if ("certificate" in raw) != ("certificate_key" in raw):
            yield Problem(key="certificate", rule="must be set together with certificate_key", value="one of them")


def load_service(path: Path) -> ServiceSettings:
    words = Vocabulary(sections={"": (ServiceSettings,)}, goes_with={})
    return parsed(read_text(path), ServiceSettings, file=str(path), words=words)
