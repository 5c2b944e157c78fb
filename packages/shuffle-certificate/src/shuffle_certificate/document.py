"""A result: its findings with their certificates, and each place that repeats the figure of a finding."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from fractions import Fraction
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

from .certificate import MalformedError
from .checks import CONTRADICTED, NOT_CHECKED, Row, check
from .planned import compared, draws, randomizes

_NO_CERTIFICATE = "no certificate is written for this figure"
_RULES = {"delta": "below", "people": "at least"}
_QUESTIONS = {
    "epsilon": ("central-dp",),
    "delta": ("central-dp",),
    "people": ("central-dp",),
    "local_epsilon": ("local-dp",),
    "reidentification": ("re-identification",),
    "guessing": ("vulnerability", "membership"),
    "standard_error": (),
}
_LARGEST = {"epsilon": 20.0, "local_epsilon": 20.0, "guessing": 0.99, "reidentification": 0.99}
"""Larger limits do not limit privacy."""

_VIEWS = {"none": "senders", "secure-aggregation": "sums", "mallows": "noisy order"}
"""What kinds of shufflers reveal; all others the multiset of reports."""

_KINDS = {*_VIEWS, "uniform", "scrambler", "blanket-messages"}
"""Kinds of shufflers whose releases the checker can compare."""

_WIDE = ("local-hashing", "subset-selection", "hadamard-response", "unary-encoding")
"""Kinds of randomizers whose matrix has too many entries for a certificate if there are many values."""

_CHARTS = ("privacy-against-people", "privacy-against-noise")

Source = tuple[Mapping[str, Any], Row]
"""The figure of a finding, and the result of its check."""


def check_document(document: Any) -> Iterator[Row]:
    """Yield a row for each figure of a result, or for each certificate of a list.

    Raises:
        MalformedError: `document` is neither a result nor a list of certificates, or a certificate is malformed.
    """
    if isinstance(document, Mapping) and "epsilon" in document and "findings" not in document:
        document = [document]
    if isinstance(document, list):
        for place, given in enumerate(document):
            yield _check(given, question=f"certificate {place}")
        return
    findings = document.get("findings") if isinstance(document, Mapping) else None
    if not isinstance(findings, list) or not all(isinstance(finding, Mapping) for finding in findings):
        message = "This is no result of hushuffle: it has no list of findings."
        raise MalformedError(message)
    result = _Result(document)
    for finding in findings:
        yield result.finding(finding)
    for places in (result.randomizers, result.targets, result.statement, result.charts, result.columns):
        yield from places()
    if "statement" in document:
        yield Row("other texts, tables and charts", NOT_CHECKED, "they are not compared with certificates")


def _check(given: Any, *, question: str) -> Row:
    row = check(given, question=question)
    if row.verdict != NOT_CHECKED and (key := _unknown(given, _schema())) is not None:
        message = f"The certificate is invalid: each key must be in the schema, and {key!r} is not."
        raise MalformedError(message)
    return row


class _Result:
    """Compares the places of a result with its findings; `finding` comes first, for each finding."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document, self.sources = document, list[Source]()
        text = document.get("specification")
        try:
            specification = tomllib.loads(text) if isinstance(text, str) else {}
        except (tomllib.TOMLDecodeError, RecursionError):
            specification = None
        self.readable, self.limits = specification is not None, _mapping(_mapping(specification).get("targets"))
        self.specification = _mapping(specification)
        self.shuffler = _mapping(self.specification.get("shuffler")) or {"kind": "none"}
        self.population = population = _mapping(document.get("population"))
        self.reports, most, senders = (_number(population.get(key)) for key in ("n", "reports_per_person", "people"))
        # Without a column that identifies people, there are at least n/most people.
        self.people = senders or (-(-self.reports // max(most or 1, 1)) if self.reports else None)

    def finding(self, finding: Mapping[str, Any]) -> Row:
        """Return the row of a finding: its figure is that of its certificate, and the certificate is right."""
        question, given, bound = str(finding.get("question"))[:80], finding.get("certificate"), finding.get("bound")
        figure = finding.get("shown") or bound
        if given is None:
            row = Row(question, NOT_CHECKED, self._lacking(question, _mapping(bound)))
        elif not isinstance(given, Mapping):
            message = "A certificate must be an object."
            raise MalformedError(message)
        elif not isinstance(bound, Mapping) or [bound.get("lower"), bound.get("upper")] != given.get("epsilon"):
            row = Row(question, CONTRADICTED, "the figure is not the one that its certificate is about")
        elif (other := self._other(bound, given, finding)) is not None:
            row = Row(question, CONTRADICTED, f"the certificate is not about this result: {other} differs")
        elif figure != bound or not rounds(finding.get("sentence"), bound):
            row = Row(question, CONTRADICTED, "the finding shows another figure than its bound")
        else:
            row = _check(given, question=question)
        self.sources.append((_mapping(figure), row))
        return row

    def _lacking(self, question: str, bound: Mapping[str, Any]) -> str:
        """Return the sentence for a finding without certificate: which part of the deployment has none."""
        written, kind = self.specification, self.shuffler.get("kind")
        device, random = _mapping(written.get("randomizer")), isinstance(self.shuffler.get("dummies"), Mapping)
        several = max(_number(written.get("rounds")) or 1, _number(self.population.get("reports_per_person")) or 1) > 1
        parts = {
            "sums by split and mix": "sum" in written,
            "these groups of people with different randomizers": "groups" in written,
            "the reach of audiences": "audiences" in _mapping(written.get("population")),
            "an infinite epsilon": bound.get("upper") == "infinity",
            "dummies of each value": kind == "augmented",
            "memoized reports of values that change": (self._memory() or 0) > 1,
            "a shuffler with a cap": "cap" in self.shuffler,
            "Laplace noise of servers": bool(self.shuffler.get("laplace")),
            "several rounds or reports among a random number of messages": several
            and (random or kind == "blanket-messages"),
            "true hash buckets among messages": (device.get("kind"), device.get("epsilon")) == ("local-hashing", "inf"),
            "a matrix of more than 4,096 probabilities": device.get("kind") in _WIDE,
        }
        reasons = (part for part, there in parts.items() if there and question.startswith("central-dp"))
        return _NO_CERTIFICATE.replace("this figure", next(reasons, "this figure"))

    def _other(self, bound: Mapping[str, Any], given: Mapping[str, Any], finding: Mapping[str, Any]) -> str | None:
        """Return the name of a field in which a result and its certificate differ; None if they agree."""
        if bound.get("unit") != "nats" or bound.get("kind") != given.get("kind"):
            return "the unit or the kind of the figure"
        if not self.readable:
            return "the specification, which is no TOML,"
        if _number(self.limits.get("delta")) != _number(given.get("delta")):
            return "delta"
        question, columns = str(finding.get("question")), _mappings(self.specification.get("columns"))
        if question.endswith("-of-a-column"):
            named = str(finding.get("adversary")).removeprefix("Column ")  # absent in older results
            columns = [column for column in columns if named.startswith(f"{column.get('name')}: ")][:1]
        elif not columns:
            columns = [self.specification]
        releases = [given, *_mappings(given.get("further"))]
        if len(columns) != len(releases) or len(releases) != 1 + len(_list(given.get("further"))):
            return "the number of columns"
        rounds = 1 if "one-round" in question else self.specification.get("rounds", 1)
        differing = (
            self._differing(column, release, rounds, given.get("version"))
            for column, release in zip(columns, releases, strict=True)
        )
        return next((name for name in differing if name is not None), None)

    def _differing(self, column: Mapping[str, Any], given: Mapping[str, Any], rounds: Any, version: Any) -> str | None:
        """Return the name of a field in which the specification of a column differs from a release of a certificate."""
        release = _plain(given)
        if version != 1:
            release = next((_mapping(step.get("release")) for step in _mappings(given.get("steps"))), {})
        people = sum(_number(group[0]) or 0.0 for group in _list(release.get("groups")) if _list(group))
        planned = dict(_mapping(self.specification.get("population")))
        planned |= {key: column[key] for key in ("categories", "k") if key in column}
        reports = {part.get("reports_per_person") for part in (planned, self.population)} - {None} or {1}
        parts = [release.get(key) for key in ("view", "honest", "messages")]
        shuffled = self.shuffler.get("kind") in _KINDS and parts == self._shuffled(people, _mapping(parts[2]))
        counted = self.reports == people or (column is not self.specification and people < (self.reports or 0))
        alike = {
            "the number of people": counted and planned.get("n") in (None, people),
            "the number of rounds": rounds == release.get("rounds", 1),
            "the number of reports of one person": reports == {release.get("reports", 1)},
            "the memoized reports": release.get("memory", 0) == self._memory(),
            "the randomizer": self._randomize(column, release, planned, given),
            "the shuffler, with its messages and honest people,": shuffled,
        }
        return next((name for name, same in alike.items() if not same), None)

    def _randomize(self, column: Mapping[str, Any], release: Any, planned: Any, given: Mapping[str, Any]) -> bool:
        """Return whether the randomizer of a column, or of each group with its number of people, is the stated one."""
        if "groups" not in self.specification:
            return randomizes(_mapping(column.get("randomizer")), planned, given)
        devices = dict(enumerate([{**given, "randomizers": []}, *_mappings(given.get("randomizers"))]))
        stated = [(group.get("people"), group.get("randomizer")) for group in _mappings(self.specification["groups"])]
        written = [(count, devices.get(place, {})) for count, place in map(_list, _list(release.get("groups")))]
        return len(stated) == len(written) and all(
            people == count and randomizes(_mapping(device), planned, shown)
            for (people, device), (count, shown) in zip(stated, written, strict=True)
        )

    def randomizers(self) -> Iterator[Row]:
        """Yield a row if the specification has a randomizer that is not compared with the certificates."""
        columns, groups = (_mappings(self.specification.get(key)) for key in ("columns", "groups"))
        stated = [
            _mapping(part["randomizer"]) for part in (self.specification, *columns, *groups) if "randomizer" in part
        ]
        certified = any(row.verdict != NOT_CHECKED for _, row in self.sources)
        if certified and not all(map(compared, stated)):
            yield Row("randomizer", NOT_CHECKED, "this kind, or its file, is not compared with the certificates")

    def _shuffled(self, people: float, sent: Mapping[str, Any]) -> list[Any]:
        """Return the view, the honest people and the messages that the specification implies, as a step writes them."""
        kind, numbers = self.shuffler.get("kind"), {key: _number(entry) for key, entry in self.shuffler.items()}
        dummies, honest, messages = numbers.get("dummies"), people, dict[str, Any]()
        if kind == "blanket-messages":
            with suppress(ValueError, OverflowError):
                honest = max(1, int(Fraction(str(numbers.get("honest", 1))) * int(people)))
                trials, p = int(people) * int(numbers.get("trials", 1) or 0), str(Fraction(numbers.get("p") or 0))
                messages = {"trials": trials, "p": p, "own": True, "table": []}
        elif isinstance(self.shuffler.get("dummies"), Mapping) and not sent.get("own"):
            messages = dict(sent) if draws(_mapping(self.shuffler["dummies"]), sent) else {"table": None}
        elif kind == "secure-aggregation":
            trials = int((numbers.get("coins") or 0) * (1 if (given := numbers.get("honest")) is None else given))
            messages = {"trials": trials, "p": "1/2", "own": False, "table": [], "each": True} if trials else {}
        elif dummies:
            messages = {"trials": dummies, "p": "1", "own": False, "table": []}
        return [_VIEWS.get(str(kind), "multiset"), None if honest == people else honest, messages or None]

    def _memory(self) -> Any:
        """Return the number of values of one person with a memoized report; 0 if reports are fresh."""
        changes, rounds = (_number(self.specification.get(key)) for key in ("changes", "rounds"))
        if self.specification.get("memoised") is not True:
            return 0
        return min(changes or 0, (rounds or 1) - 1) + 1

    def _strongest(self, questions: tuple[str, ...]) -> Source | None:
        """Return the finding with the largest upper bound among these questions; None without a finding."""
        sources = [(figure, row) for figure, row in self.sources if row.question in questions]
        return max(sources, key=lambda source: _number(source[0].get("upper")) or 0.0, default=None)

    def targets(self) -> Iterator[Row]:
        """Yield a row for each target: its figure, limit, and pass or fail; and a row if the status is wrong."""
        verdict = _mapping(self.document.get("verdict"))
        targets = _mappings(verdict.get("targets"))
        for target in targets:
            yield self._target(str(target.get("key"))[:80], target)
        for key in _QUESTIONS:
            if key in self.limits and key not in [target.get("key") for target in targets]:
                yield Row(f"target {key}", CONTRADICTED, "the specification has this target, the verdict does not")
        met = all(target.get("met") is True for target in targets)
        status = status_of(targets, _mappings(_mapping(self.document.get("statement")).get("assumptions")))
        if targets and [verdict.get("met"), verdict.get("status")] != [met, status]:
            yield Row("verdict", CONTRADICTED, "its status does not follow from its targets and assumptions")

    def _target(self, key: str, target: Mapping[str, Any]) -> Row:
        place, rule, figure = f"target {key}", _RULES.get(key, "at most"), target.get("got")
        threshold, people = _number(target.get("asked")), self.people
        limit = _number(self.limits.get(key)) if key != "delta" else 1 / people if people else None
        if target.get("rule") != rule or threshold is None or limit not in (None, threshold):
            return Row(place, CONTRADICTED, "its limit is not that of the specification")
        if [target.get("met"), target.get("word")] != passes(rule, threshold, figure):
            return Row(place, CONTRADICTED, "pass or fail does not follow from the figure and the limit")
        if figure is None:
            return Row(place, NOT_CHECKED, "there is no figure")
        source = self._strongest(_QUESTIONS.get(key, ()))
        exact = people if key == "people" else _number(self.limits.get(key)) if key == "delta" else None
        if key in ("delta", "people") and source is not None:  # the certificate holds for these
            figure = {end: _number(figure.get(end)) for end in ("lower", "upper")}
            source = None if exact is None else ({"lower": exact, "upper": exact}, source[1])
        return _repeat(place, figure, source)

    def statement(self) -> Iterator[Row]:
        """Yield a row for each case of the statement, and a row for its claim if there is a certificate."""
        central, statement = self._strongest(("central-dp",)), _mapping(self.document.get("statement"))
        for scenario in _mappings(statement.get("scenarios")):
            place, figure = f"case {str(scenario.get('key'))[:80]}", scenario.get("central")
            if scenario.get("key") == "as-planned":
                yield _repeat(place, figure, central)
            elif figure is not None:
                yield Row(place, NOT_CHECKED, "no certificate is written for this case")
        if central is not None and central[1].verdict != NOT_CHECKED and statement:
            yield _repeat("claim", central[0] if rounds(statement.get("claim"), central[0]) else None, central)

    def charts(self) -> Iterator[Row]:
        """Yield a row for each chart of the certified figure: its point of this deployment."""
        central = self._strongest(("central-dp",))
        for chart in _mappings(self.document.get("charts")):
            series = [one for one in _mappings(chart.get("series")) if one.get("label") != "unshuffled"]
            if central is None or central[1].verdict == NOT_CHECKED or chart.get("key") not in _CHARTS or not series:
                continue
            for x, lower, upper in zip(*(_list(series[0].get(key)) for key in ("x", "lower", "upper")), strict=False):
                if x == chart.get("here"):
                    yield _repeat(f"chart {chart['key']}", {"lower": lower, "upper": upper}, central)

    def columns(self) -> Iterator[Row]:
        """Yield a row for each line of the table of columns."""
        sources = [source for source in self.sources if source[1].question == "central-dp-of-a-column"]
        for table in _mappings(self.document.get("tables")):
            names = _list(table.get("columns"))
            if table.get("key") == "columns" and "central epsilon" in names:
                for cells, source in zip_longest(_list(table.get("rows")), sources):
                    cell = dict(zip(map(str, names), _list(cells), strict=False)).get("central epsilon")
                    yield _repeat("table columns", cell, source)


def _plain(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the release of a certificate without steps as the release of a step."""
    messages = {"trials": given.get("dummies"), "p": "1", "own": False, "table": list[Any]()}
    view = "multiset" if given.get("release") == "shuffled" else "senders"
    return {"groups": [[given.get("n"), 0]], "view": view, "messages": messages if given.get("dummies") else None}


def _repeat(place: str, figure: Any, source: Source | None) -> Row:
    """Return the row of a place that repeats the figure of a finding."""
    if source is None:
        return Row(place, NOT_CHECKED, _NO_CERTIFICATE)
    keys = {"lower", "upper"} | ({"kind", "unit"} & _mapping(figure).keys())
    if not isinstance(figure, Mapping) or any(figure.get(key) != source[0].get(key) for key in keys):
        return Row(place, CONTRADICTED, f"the figure is not that of {source[1].question}")
    return Row(place, source[1].verdict, source[1].reason)


def passes(rule: str, threshold: float, figure: Any) -> list[Any]:
    """Return whether a target is met by a figure, and the word for it."""
    if figure is None:
        return [None, "not known"]
    lower, upper = (_number(_mapping(figure).get(end)) for end in ("lower", "upper"))
    if lower is None or upper is None:
        return []
    if rule == "at least":
        met, open_end = lower >= threshold, upper >= threshold
    else:
        met, open_end = upper < threshold or (rule == "at most" and upper == threshold), lower <= threshold
    return [met, "pass" if met else "not shown" if open_end and lower < upper else "fail"]


def status_of(targets: list[Mapping[str, Any]], assumptions: list[Mapping[str, Any]]) -> str:
    """Return the status of a verdict that follows from its targets and assumptions."""
    limits = [(_LARGEST.get(str(target.get("key"))), _number(target.get("asked"))) for target in targets]
    if not all(target.get("met") is True for target in targets):
        return "not met"
    if not any(
        largest and threshold is not None and (threshold <= largest if largest > 1 else threshold < largest)
        for largest, threshold in limits
    ):
        return "no privacy limit"
    return "met" if all(assumption.get("vouched") for assumption in assumptions) else "not confirmed"


def rounds(sentence: Any, bound: Mapping[str, Any]) -> bool:
    """Return whether each epsilon and factor in a sentence is the upper bound, rounded up to four digits."""
    upper = _number(bound.get("upper"))
    if upper is None or not isinstance(sentence, str):
        return True
    factor = math.exp(min(upper, 700.0))
    for pattern, value in ((r"epsilon = (\d[\d.,e-]*)", upper), (r"a factor (\d[\d.,e+]*)", factor)):
        for text in re.findall(pattern, sentence):
            shown = _number(text.rstrip(".,").replace(",", ""))
            if shown is None or not value * (1 - 1e-12) <= shown <= value * 1.001 + 1e-12:
                return False
    return True


def _number(value: Any) -> float | None:
    """Return a number of a document as a float, also the text infinity; None: it is none."""
    try:
        return None if isinstance(value, bool) or value is None else float(value)
    except (OverflowError, TypeError, ValueError):
        return None


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [entry for entry in _list(value) if isinstance(entry, Mapping)]


@cache
def _schema() -> Any:
    return json.loads(Path(__file__).with_name("certificate.schema.json").read_text("ascii"))


def _unknown(given: Any, part: Mapping[str, Any]) -> str | None:
    """Return a key of an object, or of an object inside it, that is not in a part of the schema; None without one."""
    part = _schema()["$defs"][str(part["$ref"]).rpartition("/")[2]] if "$ref" in part else part
    part = part["anyOf"][0] if "anyOf" in part and "properties" not in part else part
    if isinstance(given, list) and isinstance(part.get("items"), Mapping):
        return next((key for each in given if (key := _unknown(each, part["items"])) is not None), None)
    keys = part.get("properties")
    if not isinstance(given, Mapping) or keys is None:
        return None
    strange = [str(key)[:80] for key in given if key not in keys]
    inside = (key for name, each in given.items() if name in keys and (key := _unknown(each, keys[name])) is not None)
    return strange[0] if strange else next(inside, None)
