"""Write the reference pages of the program and of its files from the code: python docs/reference.py.

A list has the keys, types, defaults and descriptions of a schema; a command has its help. Only introductions and links
are written here.
"""

from __future__ import annotations

import inspect
import json
import re
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cyclopts import App

from hushuffle import cli, report
from hushuffle.cli.console import SCHEMA_VERSION, Exit
from hushuffle.specification.schema import column_schema, groups_schema, schema_of, sum_schema
from hushuffle_network.meter import LABELS, METRICS
from hushuffle_network.queries.specification import PlanSpecification
from hushuffle_network.settings import ServiceSettings

HERE = Path(__file__).parent
Schema = Mapping[str, Any]

_LIST = re.compile(r"^<!-- (?:keys|kinds) (\S+)(?: (\S+))? -->$", flags=re.MULTILINE)
_FACTS = re.compile(r"\bwrites?\b|\breads?\b|exit code|\bcombination\b", flags=re.IGNORECASE)
_LIMITS = {"minimum": "≥", "exclusiveMinimum": "&gt;", "maximum": "≤", "exclusiveMaximum": "&lt;"}
_LARGE = 10**6
"""Limits from here on only keep computations possible."""

_TYPES = {"string": "text", "boolean": "true or false", "object": "table", "array": "list"}
_PLACES = {Path: "PATH", str: "TEXT", int: "INTEGER", float: "NUMBER"}


_SPECIFICATION = """# The specification

A specification is a TOML file that describes one deployment. `hushuffle schema` prints its
[JSON schema](../specification.schema.json), which editors use to complete and check it. The program reports all
problems at once. File names are relative to the specification. A key without a default is optional.

## Top level

<!-- keys . top -->

`memoised` is for [repeated questions](../how-to/ask-again.md).

## Population

Give `data`, or `n` with the categories. With `[[columns]]`, each column has its own `name` and `k` or categories.
[Numbers](../how-to/numbers.md) have `kind`, `low`, `high` and `levels`.

<!-- keys population DataPopulation,CountedPopulation -->

## Randomizer

Guides: [many categories and bits](../how-to/several-messages.md), [numbers](../theory/numbers.md),
[your own channel](../how-to/own-mechanism.md), [reach studies](#reach-studies).

<!-- kinds randomizer -->

## Shuffler

<!-- kinds shuffler -->

## Adversaries

<!-- kinds adversaries -->

## Run

<!-- keys run Run -->

## Targets

Each target is a line of the verdict: *pass*, *fail*, *not shown* (the certified figure leaves it open) or *not known*
(no figure exists). The program also checks that delta is below one over the number of people. With `--strict` it exits
with code 3 unless all pass.

<!-- keys targets Targets -->

## The first page

`[statement]` has names and reasons for the report's first page. If keys are missing, the report lists them, and its
verdict is not green.

<!-- keys statement StatementSection -->

<!-- keys statement.vouched Vouched -->

## Only sums

`kind = "secure-aggregation"` [releases only sums](../how-to/secure-sums.md). `collect` writes `sums.json`.

<!-- keys shuffler SecureAggregation -->

## Groups with different randomizers

A file with `[[groups]]` describes groups of people who answer one question, each group with its randomizer, behind one
shuffler: `"uniform"`, or `"scrambler"` with a fixed number of dummies. It has `title`, `group_column`, `[population]`,
`[[groups]]`, `[shuffler]`, `[targets]` and `[statement]`, and nothing else. The group of each person is public.
Shuffled reports [do not reveal the shares in each group](../theory/estimation.md#theorem-12). `estimate` gives shares
in which groups with less noise count more, and the largest difference from the shares among all people.

<!-- keys groups[] Group -->

## Sums by several messages

A file with `[sum]` describes the [sum and mean of a number](../how-to/numbers.md#sums-by-several-messages). It has
`title`, `rounds`, `[population]` with `kind = "number"`, `[sum]`, `[targets]` and `[statement]`, and nothing else.
The [table of kinds](support.md#kinds-of-deployment) lists the commands that accept it.

<!-- keys sum Sum -->

<!-- keys targets SumTargets -->

`[statement]` has the keys of [the first page](#the-first-page) without `colluders`, and in addition:

<!-- keys statement SumStatement -->

<!-- keys statement.vouched SumVouched -->

## A random number of dummies

A scrambler's number of dummies is fixed, or a table such as `dummies = { kind = "binomial", trials = 1000, p = 0.5 }`.
From a table the number is drawn for each release, independently of all values. Figures use the implemented
distribution: its probabilities are multiples of 2⁻⁶⁴, and it has at most 1,048,576 different numbers. Query plans
(`traffic.dummies`) need a fixed number.

<!-- keys shuffler Scrambler -->

<!-- kinds Scrambler.dummies -->

## Messages of clients

With `"blanket-messages"` or `"fakes-per-value"` each client sends
[additional messages](../how-to/several-messages.md) that do not depend on its value. Reports may be true
(`randomizer.epsilon = "inf"`); with fake reports they must be. Very many categories take `"local-hashing"`.

<!-- keys shuffler BlanketMessages,FakesPerValue -->

## Dummies of a trusted shuffler

With `"augmented"` the shuffler [samples reports and adds dummies](../how-to/several-messages.md) to each category.
Reports must be true (`randomizer.epsilon = "inf"`). `shuffler.each` is a table as
[above](#a-random-number-of-dummies), or `"endless-geometric"`.

<!-- keys shuffler AugmentedShuffle -->

<!-- keys shuffler.each EndlessDummies -->

## Reach studies

A [reach study](../how-to/reach-study.md) has `randomizer.kind = "bit-flipping"`, `shuffler.kind = "uniform"` and only
the adversary `"strong"`. `targets.epsilon` is for one person added or removed, with all its `hashes` columns.

<!-- keys population PublisherPopulation,AudiencePopulation -->

With `"augmented"` the shuffler adds [dummies](#dummies-of-a-trusted-shuffler) to counts of unflipped columns:

<!-- keys population.views View -->

## A shuffle among neighbours

`shuffler.kind = "mallows"` ([how-to](../how-to/shuffle-in-neighbourhoods.md)) needs data. Public columns of the same
file define the groups. The adversary `"order"` observes the order.

<!-- keys shuffler MallowsShuffle -->

<!-- keys shuffler.groups Groups -->

<!-- keys adversaries[] Order -->

<!-- keys adversaries[].attack OrderAttack -->
"""

_PLAN = """# The specification of a plan

Which keys does the TOML file of [`hushuffle plan`](../how-to/plan-a-query.md) have? The program reports all problems at
once. File names are relative to the specification. A key without a default is optional.

*Nodes* exchange messages: a *source* sends one to a *target*. *Scramblers* between them add dummies and shuffle.

## Every query

<!-- keys . top -->

<!-- keys traffic Traffic -->

<!-- keys targets PlanTargets -->

<!-- keys network Network -->

<!-- keys run PlanRun -->

## Aggregate

`query.kind = "aggregate"`.

<!-- keys query AggregateQuery -->

<!-- keys query.generated Generated -->

<!-- keys query.columns.NAME Intervals -->

<!-- keys query.noise ReleaseNoise -->

## K-means

`query.kind = "k-means"`. `encoding`, `separator` and `missing` are as above.

<!-- keys query KMeansQuery -->

<!-- keys query.generated GeneratedPoints -->

<!-- keys query.noise Noise -->

## Histogram

`query.kind = "histogram"`. `data`, `generated`, `encoding`, `separator` and `missing` are as for an aggregate.

<!-- keys query HistogramQuery -->

## Operators

`query.kind = "graph"`. `data`, `generated`, `encoding`, `separator` and `missing` are as for an aggregate.
Each `[[query.operators]]` has one of five kinds, each with a `name`, and uses the results of earlier ones.

<!-- keys query OperatorQuery -->

`kind = "select"` keeps the people who have one of the labels in each column. The messages of others are discarded.

<!-- keys query.operators[] SelectOperator -->

`kind = "group"`: each person sends one message to the node of its group.

<!-- keys query.operators[] GroupOperator -->

`kind = "join"`: each person sends one message for each side, to the node of its key, which pairs the rows of a key.

<!-- keys query.operators[] JoinOperator -->

`kind = "aggregate"`: the nodes of a group compute functions of their groups, the nodes of a join count pairs.

<!-- keys query.operators[] AggregateOperator -->

`kind = "iterate"`: federated averaging. In each round the nodes of a group average the updates of a linear model.

<!-- keys query.operators[] IterateOperator -->
"""

_PROGRAM = """# The program

`hushuffle COMMAND --help` also prints explanations and examples, `hushuffle --version` the version. A command writes
all of its files or none, and checks that it can write before it works. Progress and remaining time appear on a terminal
only.

**Privacy of messages.** Messages name only files, columns and categories of the command line or specification, and
files matched by a folder or glob. Unexpected errors show type and place in the code, because their text may quote data.

| exit code | meaning |
|---|---|
{exits}

| environment variable | meaning |
|---|---|
{variables}

{commands}

## Settings of a service

These are the keys of a file for [`node start`](#node-start) that runs a [service for phones](phone-services.md), one
file per process. Paths are relative to the file.

{settings}

## Counters of a service

`GET /metrics` prints these in the text format of Prometheus. No counter is about a person, and no counter of a target
tells dummies from other reports.

{counters}

## JSON documents

Infinity is the text `"infinity"`. `hushuffle.report.json_schema()` is the schema of `result.json`,
`hushuffle.report.json_schema("study")` that of `study.json`. The
[schema of all documents](../output.schema.json) covers what commands print with `--json`. `schema_version` and
`content` are the first keys of each document. Within a version, keys are only added.

| document | keys |
|---|---|
{documents}
"""

_HEADINGS = {
    "scrambler": "a-random-number-of-dummies",
    "blanket-messages": "messages-of-clients",
    "fakes-per-value": "messages-of-clients",
    "augmented": "dummies-of-a-trusted-shuffler",
    "secure-aggregation": "only-sums",
    "mallows": "a-shuffle-among-neighbours",
    "order": "a-shuffle-among-neighbours",
}
"""The heading under which the keys of a kind are."""

_PAGES = {
    "assess": ("how-to/read-a-report.md", "reference/specification.md"),
    "attack linkage": ("how-to/attack.md",),
    "audit": ("how-to/audit.md",),
    "calibrate": ("how-to/choose-a-mechanism.md",),
    "choose": ("how-to/choose-a-mechanism.md",),
    "collect": ("how-to/collect.md",),
    "estimate": ("how-to/estimate.md",),
    "explore": ("how-to/choose-a-mechanism.md#explore",),
    "inspect": ("tutorials/run-a-collection.md#look-at-a-file",),
    "minimum-batch": ("how-to/secure-sums.md",),
    "node start": ("reference/phone-services.md",),
    "plan analyse": ("how-to/plan-a-query.md", "reference/plan-specification.md"),
    "plan run": ("how-to/run-for-phones.md", "how-to/phones-on-three-hosts.md"),
    "reproduce": ("how-to/reproduce.md",),
    "verify": ("how-to/verify.md",),
}
"""The guides of a command."""

_VARIABLES = {
    "HUSHUFFLE_DATA": "folder of the papers' data sets, for `reproduce`",
    "HUSHUFFLE_STATE": "folder of the [ledgers](../how-to/collect.md#where-the-ledger-is)",
    "HUSHUFFLE_TRACEBACK": "`1` prints unexpected errors in full: their text may quote data",
    "NO_COLOR": "if it has any value, output has no colours",
    "SOURCE_DATE_EPOCH": "the date of a report, in seconds since 1970",
}


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|").replace("<", "&lt;").replace("*", r"\*")


def _type(value: Schema) -> str:
    """Return the type of a value, with its limits."""
    if "enum" in value or "const" in value:
        return " or ".join(f"`{json.dumps(word)}`" for word in value.get("enum", [value.get("const")]))
    parts = value.get("anyOf", value.get("oneOf"))
    if parts:
        return " or ".join(dict.fromkeys(map(_type, parts)))
    kinds = value.get("type", "table")
    name = " or ".join(_TYPES.get(kind, kind) for kind in ([kinds] if isinstance(kinds, str) else kinds))
    limits = [(sign, value[limit]) for limit, sign in _LIMITS.items() if limit in value]
    return " ".join([name, *(f"{sign}{number:,}".removesuffix(".0") for sign, number in limits if number < _LARGE)])


def _line(section: Schema, key: str, prefix: str = "") -> str:
    """Return the line of one key: type, default, description."""
    value = section["properties"][key]
    words = value.get("enum", [value["const"]] if "const" in value else [])
    listed = bool(words) and all(f'"{word}"' in value["description"] for word in words)
    facts = [] if listed else [_type(value)]
    if key in section.get("required", ()):
        facts.append("required")
    elif "default" in value and not isinstance(value["default"], dict):
        facts.append(f"default `{json.dumps(value['default'])}`")
    about = f" ({', '.join(facts)})" if facts else ""
    return f"- `{prefix}{key}`{about}: {_cell(value['description'])}"


class Lists:
    """Lists of keys for one page about `schema`; a line that stands further up is not repeated."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._written: set[str] = set()
        self.used = {"top"}

    def _section(self, name: str) -> Schema:
        self.used.add(name)
        section: Schema = self._schema if name == "top" else self._schema["$defs"][name]
        return section

    def keys(self, prefix: str, names: str) -> str:
        """Return the keys of sections: `names` with commas between them; prefix "." is the top level."""
        lines = []
        for name in names.split(","):
            section = self._section(name)
            for key, value in section["properties"].items():
                has_own_list = name == "top" and "$ref" in str(value)
                if not has_own_list and (key != "kind" or value.get("const", "number") == "number"):
                    lines.append(_line(section, key, f"{prefix}.".lstrip(".")))
        new = [line for line in dict.fromkeys(lines) if line not in self._written]
        self._written |= {*new}
        return "\n".join(new)

    def kinds(self, place: str) -> str:
        """Return the kinds of a section, each with its keys."""
        name, _, key = place.rpartition(".")
        value = self._section(name or "top")["properties"][key]
        lines = []
        for part in (part for part in value.get("items", value)["oneOf"] if "$ref" in part):
            section = self._section(part["$ref"].rpartition("/")[2])
            kind = section["properties"]["kind"]["const"]
            link = f" [Keys](#{_HEADINGS[kind]})." if kind in _HEADINGS else ""
            lines.append(f'- `"{kind}"`: {_cell(section["description"])}{link}')
            lines += [f"    {_line(section, key)}" for key in section["properties"] if key != "kind" and not link]
        return "\n".join([_cell(value["description"]), "", *lines])

    def fill(self, text: str) -> str:
        """Return a text with lists in place of their names."""
        return _LIST.sub(lambda match: self.keys(match[1], match[2]) if match[2] else self.kinds(match[1]), text)


def specification() -> str:
    """Return the page of specifications."""
    return _filled(_SPECIFICATION, column_schema(), groups_schema(), sum_schema())


def plan_specification() -> str:
    """Return the page of plans."""
    return _filled(_PLAN, schema_of(PlanSpecification, ""))


def _filled(text: str, *schemas: Schema) -> str:
    """Return a page with the lists of the schemas; the first one has precedence."""
    definitions = {name: section for schema in schemas[::-1] for name, section in schema["$defs"].items()}
    properties = {key: value for schema in schemas[::-1] for key, value in schema["properties"].items()}
    lists = Lists({**schemas[0], "$defs": definitions, "properties": properties})
    filled = lists.fill(text)
    left = definitions.keys() - lists.used
    assert not left, f"sections without a list: {', '.join(sorted(left))}"
    return filled


def _commands(app: App, *names: str) -> Iterator[tuple[str, App]]:
    """Yield every command that does something, by its full name."""
    inner = [name for name in app if not name.startswith("-")]
    if not inner:
        yield " ".join(names), app
    for name in sorted(inner):
        yield from _commands(app[name], *names, name)


def _option(name: str, hint: Any) -> str:
    """Return an option with what follows it."""
    parts = typing.get_args(hint)
    plain = [part for part in parts if part is not type(None)]
    if type(None) in parts:
        return _option(name, plain[0])
    if typing.get_origin(hint) is typing.Literal:
        return f"{name} {'|'.join(parts)}"
    if typing.get_origin(hint) in (list, tuple):
        return f"{_option(name, plain[0])}..."
    return f"{name} {_PLACES[hint]}" if hint in _PLACES and name.startswith("-") else name


def _command(name: str, app: App) -> str:
    """Return the section of one command: what it does, what it reads and writes, how it ends, and its options."""
    about, _, described = inspect.cleandoc(app.help).partition("\n\nArgs:\n")
    texts = dict(re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", described, flags=re.MULTILINE))
    usage, lines = ["hushuffle", name], []
    for argument in app.assemble_argument_collection():
        option = _option(argument.names[0], argument.hint)
        positional = not option.startswith("-")
        if positional or argument.required:
            usage.append(option if argument.required else f"[{option}]")
        default = f" Default: {argument.field_info.default}." if argument.show_default else ""
        lines.append(f"- `{option}`: {_cell(texts[argument.field_info.name])}{default}")
    usage += ["[OPTIONS]"] * any(line.startswith("- `-") for line in lines)
    what, *paragraphs = (_cell(part) for part in about.split("\n\n") if not part.startswith("Examples"))
    sentences = [part for text in paragraphs for part in re.split(r"(?<=\.) (?=[A-Z-])", text) if _FACTS.search(part)]
    links = [f"[{Path(page).stem.replace('-', ' ')}](../{page})" for page in _PAGES.get(name, ())]
    more = [f"See {', '.join(links)}."] if links else []
    parts = [f"## {name}", f"`{' '.join(usage)}`", " ".join([what, *sentences, *more]), "\n".join(lines)]
    return "\n\n".join(part for part in parts if part)


def _counter(name: str, meaning: str) -> str:
    label = f"{{{LABELS[name]}}}" if name in LABELS else ""
    return f"- `{name}{label}`: {meaning}"


def program() -> str:
    """Return the page of the program."""
    code = "".join(file.read_text("utf-8") for file in sorted((HERE.parent / "packages").rglob("*.py")))
    for name in {*re.findall(r"\bHUSHUFFLE_[A-Z]+\b", code), *_VARIABLES}:
        assert name in _VARIABLES, f"{name} has no description"
        assert name in code, f"{name} is not read"
    schemas = {"result.json": report.json_schema(), "study.json": report.json_schema("study")}
    return _PROGRAM.format(
        exits="\n".join(f"| {code.value} | {code.meaning} |" for code in Exit),
        variables="\n".join(f"| `{name}` | {meaning} |" for name, meaning in _VARIABLES.items()),
        commands="\n\n".join(_command(name, app) for name, app in _commands(cli._app())),  # noqa: SLF001 - the program
        settings=Lists(schema_of(ServiceSettings, "")).keys(".", "top"),
        counters="\n".join(_counter(name, meaning) for name, meaning in METRICS.items()),
        documents="\n".join(
            f"| `{name}` | {', '.join(f'`{key}`' for key in schema['properties'])} |"
            for name, schema in schemas.items()
        ),
    )


_OUTPUT_TYPES = {"text": "string", "count": "integer", "number": "number", "table": "object", "list": "array"}
_OF_EACH = "people: count, unit: text, reports: count, reports_per_person: count, confidence: number"
_SHARES = f"{_OF_EACH}, threshold: number, values: count, intervals: text, fake_users: table, frequencies: list"
_DOCUMENTS = {
    "calibration": (
        "calibrate: what the targets allow.",
        "title: text, deployment: text, population: table, targets: table, rounds: count, binding: text, "
        "verdict: list, warnings: list",
    ),
    "smallest batch": (
        "minimum-batch: the fewest people with whom the target is met.",
        "min_batch_size: count, parameters: table, certificate: table",
    ),
    "frequencies": ("estimate: the estimated share of each value.", _SHARES),
    "frequencies of columns": (
        "estimate of several [[columns]]: by column, the keys of `frequencies`.",
        "columns: table",
    ),
    "estimate of a sum": (
        "estimate of a [sum]: the sum and the mean.",
        "people: count, confidence: number, sum: table, mean: table, fake_users: table",
    ),
    "inspection of true data": (
        "inspect: the columns of a private file. Do not publish it.",
        "source: text, files: count, records: count, columns: list",
    ),
    "checks of figures": ("verify: the check of each figure of a result.", "checks: list, summary: table"),
    "studies": (
        "reproduce of several targets: the study of each, and the study of all claims.",
        "studies: list, summary: table",
    ),
    "targets of papers": ("reproduce --list: each target's name, data sets and seconds.", "targets: list"),
}
"""For each content of a document: the command that prints it, and the keys that it always has, with their types."""


def output_text() -> str:
    """Return the JSON schema of what commands print with --json, docs/output.schema.json."""
    envelope: dict[str, Any] = {
        "schema_version": {"const": SCHEMA_VERSION, "description": "Within a version, keys are only added."},
        "content": {"description": "What the document is; it determines the other keys."},
    }
    tables: dict[str, Any] = {}
    for content, (about, keys) in _DOCUMENTS.items():
        types = dict(key.split(": ") for key in keys.split(", "))
        properties = {key: {"type": _OUTPUT_TYPES[kind]} for key, kind in types.items()}
        tables[content] = {
            "type": "object",
            "description": about,
            "properties": {**envelope, "content": {"const": content}, **properties},
            "required": [*envelope, *properties],
        }
    for content, typed in (("assessment", report.json_schema()), ("study", report.json_schema("study"))):
        tables |= typed.pop("$defs")
        tables[content] = {key: value for key, value in typed.items() if key != "$schema"}
    contents = [*_DOCUMENTS, "assessment", "study"]
    cases = [
        {
            "if": {"properties": {"content": {"const": content}}},
            "then": {"$ref": f"#/$defs/{content.replace(' ', '%20')}"},
        }
        for content in contents
    ]
    envelope["content"] = {"enum": contents, **envelope["content"]}
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "hushuffle --json",
        "description": "The document that a command of hushuffle prints with --json.",
        "type": "object",
        "properties": envelope,
        "required": [*envelope],
        "allOf": cases,
        "$defs": tables,
    }
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


PAGES = {
    HERE / "reference" / "program.md": program,
    HERE / "reference" / "specification.md": specification,
    HERE / "reference" / "plan-specification.md": plan_specification,
    HERE / "output.schema.json": output_text,
}

if __name__ == "__main__":
    for file, page in PAGES.items():
        file.write_text(page(), encoding="utf-8")
