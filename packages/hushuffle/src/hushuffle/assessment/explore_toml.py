"""Prepare the specification that the page with sliders offers for download, with marks in place of slider values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import tomli_w

from hushuffle.assessment.explore_grid import Deployments
from hushuffle.specification import People

_MARKS: Final = {"n": 700000000001, "epsilon": 700000000002.5, "dummies": 700000000003, "delta": 700000000004.5}
_COLLUDERS: Final = 700000000005


def parts(deployments: Deployments, people: People, ks: Sequence[float], messages: Sequence[float]) -> dict[str, Any]:
    """Return the parts of the specification as TOML, with marks in place of the slider values (see `_text`).

    `top` has one text with all adversaries, and one with the adversaries that are defined for any n. `population` and
    `randomizer` have the original table ("own") and a table for each k. `shuffler` has the original table, a table
    without dummies and a table with dummies; if people send additional messages, it has a list for each k with a table
    for each number of messages. `targets` has the original table and a table with another delta. `statement` has the
    original table and a table with colluders. `rest` has the tables that no slider changes.
    """
    specification = deployments.specification
    plain = specification.plain()
    top: dict[str, Any] = {key: plain.pop(key) for key in ("title", "rounds", "memoised", "changes") if key in plain}
    adversaries = plain.pop("adversaries")
    of_any_crowd = [adversary for adversary in adversaries if adversary.keys() == {"kind"}]
    population, randomizer, shuffler = plain.pop("population"), plain.pop("randomizer"), plain.pop("shuffler")
    targets, statement = plain.pop("targets"), plain.pop("statement", {})
    if statement.get("vouched") == {}:
        statement.pop("vouched")
    without = {key: value for key, value in statement.items() if key != "colluders"}
    sections: dict[str, dict[str, Any]] = {
        "population": {"own": population, **{str(int(k)): _population(population, people, int(k)) for k in ks}},
        "randomizer": {"own": randomizer, **{str(int(k)): _randomizer(deployments, int(k)) for k in ks}},
        "shuffler": {
            "own": shuffler,
            "none": {"kind": "uniform"},
            "some": {"kind": "scrambler", "dummies": _MARKS["dummies"]},
        },
        "targets": {"own": targets, "other": {**targets, "delta": _MARKS["delta"]}},
        "statement": {"own": statement, "some": {"colluders": _COLLUDERS, **without}},
    }
    texts: dict[str, dict[str, Any]] = {
        name: {key: _text({name: table} if table else {}) for key, table in tables.items()}
        for name, tables in sections.items()
    }
    if deployments.sends:
        texts["shuffler"] |= {str(int(k)): _sending(deployments, shuffler, int(k), messages) for k in ks}
    of_any = {"adversaries": of_any_crowd} if of_any_crowd else {}
    top_texts = {"own": _text({**top, "adversaries": adversaries}), "other": _text({**top, **of_any})}
    return {"top": top_texts, **texts, "rest": _text(plain)}


def _population(given: dict[str, Any], people: People, k: int) -> dict[str, Any]:
    """Without data; if k is unchanged, the categories keep their names."""
    if "low" in given and "levels" in given:
        values = {key: given[key] for key in ("kind", "low", "high", "levels")}
    else:
        labels = people.population.labels
        named = k == people.k and (given.get("k") is None)
        values = {"categories": list(labels)} if named else {"k": k}
    reports = given.get("reports_per_person")
    return {"n": _MARKS["n"], **values, **({} if reports is None else {"reports_per_person": reports})}


def _randomizer(deployments: Deployments, k: int) -> dict[str, Any]:
    """The mechanism's settings, with a mark in place of epsilon."""
    chosen = deployments.own.randomizer.chosen_epsilon
    section = deployments.specification.randomizer
    if chosen is None:
        return section.model_dump(exclude_none=True)
    settled = section.settled(deployments.randomizer(k, chosen))
    either = type(section).mechanism.table.either or ()  # type: ignore[union-attr]
    return {key: value for key, value in settled.items() if key not in either} | {"epsilon": _MARKS["epsilon"]}


def _sending(deployments: Deployments, given: dict[str, Any], k: int, messages: Sequence[float]) -> list[str]:
    """The table [shuffler] for each number of additional messages."""
    texts = []
    for number in messages:
        shuffler = deployments.shuffler(k, number)
        assert shuffler.tossed is not None
        trials = {"trials": shuffler.most_messages} if "trials" in given else {}
        texts.append(_text({"shuffler": {**given, "p": shuffler.tossed[1], **trials}}))
    return texts


def _text(tables: dict[str, Any]) -> str:
    """TOML in which numbers are replaced by marks: names between NULs, which TOML cannot contain."""
    text = tomli_w.dumps(tables)
    for name, number in {**_MARKS, "colluders": _COLLUDERS}.items():
        text = text.replace(str(number), f"\0{name}\0")
    return text
