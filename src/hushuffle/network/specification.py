"""The TOML files of a run on hosts of their own: who takes part and where, and what a process of nodes needs."""

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
    """Say whether a run's document takes `text` as the name of a node.

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
        refuse('must be "host:port"', f"The port is a number from 1 to {_MOST}.")
    return text


def listening_place(text: str) -> str:
    """Return where a service listens, "host:port" or "fd:N"; refuse anything else."""
    return text if re.fullmatch("fd:[0-9]{1,6}", text) else _place(text)


Text = Annotated[str, Field(min_length=1)]
NodeName = Annotated[str, AfterValidator(_node)]


class Hosts(File):
    """Who takes part in a run, and where."""

    servers: dict[NodeName, Annotated[str, AfterValidator(_place)]]
    """Host and port of each node that others connect to."""
    seals: Text
    """A folder with NAME.seal.pub for the result and every compute node."""
    sources: Annotated[tuple[NodeName, ...], Field(strict=False)] = ()
    """The node that speaks for each person; a name may stand there several times. This or sources_file."""
    sources_file: Text | None = None
    """The same in a file, one name on a line."""

    @classmethod
    def problems(cls, raw: Mapping[str, Any]) -> Iterator[Problem]:
        given = [key for key in ("sources", "sources_file") if raw.get(key) not in (None, ())]  # the defaults
        if len(given) != 1:
            value = "both" if given else "neither"
            yield Problem(key="sources", rule="must be there, or sources_file instead", value=value)
        if raw.get("sources") == []:
            yield Problem(key="sources", rule="must be one or more names", value="none")


_HOST_WORDS: Final = Vocabulary(sections={"": (Hosts,)}, goes_with={})


def load_hosts(path: Path) -> Hosts:
    """Return the hosts in a TOML file."""
    return parsed(read_text(path), Hosts, file=str(path), words=_HOST_WORDS)


class NodeRecords(Section):
    """The records that source nodes speak for."""

    data: Text | None = None
    """A table as for the plan, one row for each record, in the order of the places in the document."""
    prepared: Text | None = None
    """Records that `hushuffle plan run` has prepared; this or data."""
    coins: Text
    """A file with a secret key of 64 hexadecimal digits or more, or env:NAME."""
    state: Text
    """A private folder: what is sent is kept there, so that it is the same when the node starts again."""


def _fingerprint(value: str) -> str:
    digits = value.replace(":", "").lower()
    if re.fullmatch("[0-9a-f]{64}", digits) is None:
        refuse("must be a SHA-256 fingerprint, 64 hexadecimal digits", "openssl x509 -noout -fingerprint -sha256")
    return digits


class Policy(Section):
    """What the owner of a source demands of a run, whoever drew it up."""

    max_epsilon: Annotated[float, Field(gt=0)] = 5.0
    """The largest epsilon of one run."""
    max_delta: Annotated[float, Field(ge=0, lt=1)] = 1e-3
    """The largest delta, of one run and of all together."""
    budget: Annotated[float, Field(gt=0)] = 10.0
    """The largest sum of the epsilons of all runs with this key of coins."""
    min_batch: Annotated[int, Field(ge=1)] = 1
    """The fewest sources with which a scrambler may release a batch; more than 1 refuses plans without scramblers."""
    min_distinct_holders: Annotated[int, Field(ge=1)] = 1
    """The fewest different nodes that hold the places of its batch; more than 1 refuses plans without scramblers."""
    authorities: Annotated[tuple[Annotated[str, AfterValidator(_fingerprint)], ...], Field(strict=False)] | None = None
    """SHA-256 fingerprints of the authorities that it trusts; left out, whatever authority.pem holds."""


class NodeConfiguration(File):
    """Which nodes of which run, and where their secrets are; never the secrets themselves."""

    document: Text
    """The run's document, the same file for all nodes."""
    nodes: Annotated[tuple[Name, ...], Field(strict=False, min_length=1)]
    """Names of the nodes, as in the document."""
    identities: Text
    """A folder with authority.pem and, for each node, NAME.pem, NAME.key and (where others seal for it) NAME.seal."""
    keys: dict[Name, Text] = Field(default_factory=dict)
    """Where a node's private key is instead: a file, or env:NAME."""
    seals: dict[Name, Text] = Field(default_factory=dict)
    """Where a node's secret seal key is instead: a file, or env:NAME."""
    listen: dict[Name, Text] = Field(default_factory=dict)
    """Where a node listens, "host:port", or "fd:N" for a socket that the process was started with."""
    addresses: dict[Name, Text] = Field(default_factory=dict)
    """The local address that a node sends from."""
    records: NodeRecords | None = None
    """For source nodes."""
    policy: Policy | None = None
    """For source nodes: what they demand of a run. With a table of their own records, the defaults hold without it."""
    state: Text = "state"
    """A private folder in which scramblers remember what they have released."""
    status: Text | None = None
    """A file for the counters, written at the end."""
    result: Text | None = None
    """For the result node: the file to write."""

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


_NODE_WORDS: Final = Vocabulary(
    sections={"": (NodeConfiguration,), "records": (NodeRecords,), "policy": (Policy,)}, goes_with={}
)


def load_node(path: Path) -> NodeConfiguration:
    """Return the configuration of nodes in a TOML file."""
    return parsed(read_text(path), NodeConfiguration, file=str(path), words=_NODE_WORDS)
