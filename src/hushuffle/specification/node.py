"""The TOML configuration of a process that runs one node or several of one run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, Field, model_validator

from hushuffle.errors import Problem
from hushuffle.specification._base import Name, Section, refuse
from hushuffle.specification.reading import parsed, read_text
from hushuffle.specification.wording import Vocabulary

Text = Annotated[str, Field(min_length=1)]


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


class NodeConfiguration(Section):
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

    @model_validator(mode="after")
    def _keep_rules(self) -> Self:
        problems = list(_problems(self.model_dump(exclude_none=True)))
        if problems:
            refuse("; ".join(str(problem) for problem in problems))
        return self


_WORDS: Final = Vocabulary(
    sections={"": (NodeConfiguration,), "records": (NodeRecords,), "policy": (Policy,)}, goes_with={}
)


def load_node(path: Path) -> NodeConfiguration:
    """Return the configuration of nodes in a TOML file.

    Raises:
        SpecificationError: with every problem: key, rule, value, hint.
    """
    return parsed(read_text(path), NodeConfiguration, file=str(path), rules=_problems, words=_WORDS)


def _problems(raw: Mapping[str, Any]) -> Iterator[Problem]:
    records = raw.get("records")
    if isinstance(records, dict):
        given = [key for key in ("data", "prepared") if key in records]
        if len(given) != 1:
            value = "both" if given else "neither"
            yield Problem(key="records", rule="must have either data or prepared", value=value)
    nodes = raw.get("nodes")
    if isinstance(nodes, list | tuple) and len(set(map(str, nodes))) < len(nodes):
        yield Problem(key="nodes", rule="must be different names", value=", ".join(map(str, nodes[:10])))
