"""The TOML files of a run on several hosts: participants with addresses, and the settings of a process of nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field

from hushuffle.errors import Problem
from hushuffle.specification._base import File, Name, Section, refuse
from hushuffle.specification.reading import parsed, read_text
from hushuffle.specification.wording import Vocabulary

_NAME: Final = re.compile("[a-z0-9][a-z0-9-]{0,62}")
_MOST: Final = 65_535


NAME_RULE: Final = "lower-case letters, digits and hyphens, at most 63, the first one no hyphen"


def is_name(text: str) -> bool:
    """Return whether a run's document accepts `text` as the name of a node.

    >>> is_name("scrambler-1-02"), is_name("Alice"), is_name("a.example")
    (True, False, False)
    """
    return _NAME.fullmatch(text) is not None


def _node(name: str) -> str:
    if not is_name(name):
        refuse(f"must be {NAME_RULE}")
    return name


def _place(text: str) -> str:
    host, _, port = text.rpartition(":")
    if not host or not re.fullmatch("[0-9]{1,5}", port) or not 0 < int(port) <= _MOST:
        refuse('must be "host:port"', f"The port must be a number from 1 to {_MOST}.")
    return text


def listening_place(text: str) -> str:
    """Return `text` if it is a listening address, "host:port" or "fd:N"; refuse any other text."""
    return text if re.fullmatch("fd:[0-9]{1,6}", text) else _place(text)


Text = Annotated[str, Field(min_length=1)]
NodeName = Annotated[str, AfterValidator(_node)]


class Hosts(File):
    """The participants of a run and their addresses."""

    servers: dict[NodeName, Annotated[str, AfterValidator(_place)]]
    """Host and port of each listening node."""
    seals: Text
    """Folder with NAME.seal.pub for the result and every compute node."""
    sources: Annotated[tuple[NodeName, ...], Field(strict=False)] = ()
    """Name of the node of each person; a name may occur several times. Give either `sources` or `sources_file`."""
    sources_file: Text | None = None
    """File with the names of `sources`, one name per line."""

    @classmethod
    def problems(cls, raw: Mapping[str, Any]) -> Iterator[Problem]:
        given = [key for key in ("sources", "sources_file") if raw.get(key) not in (None, ())]  # without the defaults
        if len(given) != 1:
            value = "both" if given else "neither"
            yield Problem(key="sources", rule="must be given, or sources_file instead", value=value)
        if raw.get("sources") == []:
            yield Problem(key="sources", rule="must be one or more names", value="none")


def load_hosts(path: Path) -> Hosts:
    return parsed(read_text(path), Hosts, file=str(path), words=Vocabulary(sections={"": (Hosts,)}, goes_with={}))


class NodeRecords(Section):
    """The records of source nodes."""

    data: Text | None = None
    """Table in the format of the plan's data, one row per record, in the order of the places in the document."""
    prepared: Text | None = None
    """File of records that `hushuffle plan run` has prepared. Give either `prepared` or `data`."""
    coins: Text
    """File with a secret key of 64 or more hexadecimal digits, or env:NAME."""
    state: Text
    """Private folder for sent messages, so that a restarted node sends the same messages."""


def _fingerprint(value: str) -> str:
    digits = value.replace(":", "").lower()
    if re.fullmatch("[0-9a-f]{64}", digits) is None:
        refuse("must be a SHA-256 fingerprint, 64 hexadecimal digits", "openssl x509 -noout -fingerprint -sha256")
    return digits


class Policy(Section):
    """The limits that a source's owner sets for runs, independent of the author of a run."""

    max_epsilon: Annotated[float, Field(gt=0)] = 5.0
    """Largest epsilon of one run."""
    max_delta: Annotated[float, Field(ge=0, lt=1)] = 1e-3
    """Largest delta of one run, and largest sum of the deltas of all runs."""
    budget: Annotated[float, Field(gt=0)] = 10.0
    """Largest sum of the epsilons of all runs with this secret key."""
    min_batch: Annotated[int, Field(ge=1)] = 1
    """Fewest sources with which a scrambler may release a batch; above 1, plans without scramblers are refused."""
    min_distinct_holders: Annotated[int, Field(ge=1)] = 1
    """Fewest different nodes in the batch of this source; above 1, plans without scramblers are refused."""
    authorities: Annotated[tuple[Annotated[str, AfterValidator(_fingerprint)], ...], Field(strict=False)] | None = None
    """SHA-256 fingerprints of the certificate authorities that the owner trusts; default: those in authority.pem."""


class NodeConfiguration(File):
    """A process's nodes, the document of their run, and the paths of their secrets; never the secrets themselves."""

    document: Text
    """File with the run's document, the same for all nodes."""
    nodes: Annotated[tuple[Name, ...], Field(strict=False, min_length=1)]
    """Names of the nodes of this process, as in the document."""
    identities: Text
    """Folder with authority.pem and, for each node, NAME.pem, NAME.key and (if others seal for the node) NAME.seal."""
    keys: dict[Name, Text] = Field(default_factory=dict)
    """Other location of a node's private key: a file, or env:NAME."""
    seals: dict[Name, Text] = Field(default_factory=dict)
    """Other location of a node's secret seal key: a file, or env:NAME."""
    listen: dict[Name, Text] = Field(default_factory=dict)
    """Address on which a node listens: "host:port", or "fd:N" for a socket that the process inherits."""
    addresses: dict[Name, Text] = Field(default_factory=dict)
    """Local address from which a node sends."""
    records: NodeRecords | None = None
    """Records, for source nodes."""
    policy: Policy | None = None
    """Limits for runs, for source nodes. Without it, the defaults hold if `records` has a table of data."""
    state: Text = "state"
    """Private folder for the state of the nodes, such as the list of batches that scramblers have released."""
    status: Text | None = None
    """File for the counters, written at the end."""
    result: Text | None = None
    """For the result node: file for the result."""

    @classmethod
    def problems(cls, raw: Mapping[str, Any]) -> Iterator[Problem]:
        records = raw.get("records")
        if isinstance(records, dict):
            given = [key for key in ("data", "prepared") if key in records]
            if len(given) != 1:
                value = "both" if given else "neither"
                yield Problem(key="records", rule="must have either data or prepared", value=value)
        nodes = raw.get("nodes")
        if isinstance(nodes, list | tuple) and len(set(map(str, nodes))) < len(nodes):
            yield Problem(key="nodes", rule="must be different names", value=", ".join(map(str, nodes[:10])))


def load_node(path: Path) -> NodeConfiguration:
    words = Vocabulary(
        sections={"": (NodeConfiguration,), "records": (NodeRecords,), "policy": (Policy,)}, goes_with={}
    )
    return parsed(read_text(path), NodeConfiguration, file=str(path), words=words)
